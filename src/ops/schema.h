#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "ir/dtype.h"

namespace sardonyx {

class InferContext;
class EvalContext;

/// Sets the types and shapes of a node's outputs as far as its inputs tell, and refuses inputs
/// that cannot fit. Runs when a model is loaded (shapes may be partly known) and again whenever
/// shapes change at run time (then all shapes are known, and the data of inputs it asks for).
using InferFn = Status (*)(InferContext&);

/// Computes a node's outputs, plainly: the meaning of the operator, and the oracle for kernels.
using EvaluateFn = Status (*)(EvalContext&);

/// The inputs and outputs of an operator: one letter each, inputs before '>'.
///
/// T, U, V, W   a tensor whose element type is in that set; equal letters have equal types
/// I, B, F, S   a tensor of int64, bool, float, string
/// N            a tensor of int32 or int64 (each N by itself)
/// X            anything
/// lower case   the same, but it may be left out
/// *            after the last letter: any number of them (at least one for a capital); each X by
///              itself, other letters all of one type
///
/// Example: Clip is "Ttt>T", Concat "T*>T", Split "Tn>T*".
struct Signature {
  const char* text;
  DTypeSet t = kAll;
  DTypeSet u = kAll;
  DTypeSet v = kAll;
  DTypeSet w = kAll;
};

/// What else there is to know about an operator.
enum OpFlags : unsigned {
  kNoFlags = 0,
  /// Refused with its name: the standard withdrew it.
  kDeprecated = 1U << 0,
  /// Gives another result each time (random numbers): never folded, never merged.
  kNondeterministic = 1U << 1,
  /// The shapes of outputs depend on the values of inputs even when infer sees all of them
  /// computed only by evaluating (NonZero, Unique, NonMaxSuppression).
  kDataDependentShape = 1U << 2,
  /// Holds what a provider compiled: that provider alone runs it, and may add attributes.
  kCompiledPart = 1U << 3,
};

/// One row per operator and version that changed its meaning; a version holds until the next row.
struct OpSchema {
  std::string_view domain;
  std::string_view name;
  int since;
  Signature signature;
  /// "axis:i to:i! mode:s": names with kinds i, f, s, t (tensor), g (graph), p (sparse tensor),
  /// y (type), and is, fs, ss, ts, gs, ys for lists; ! means required.
  const char* attributes;
  InferFn infer;
  EvaluateFn evaluate;
  unsigned flags = kNoFlags;

  bool has(OpFlags flag) const { return (flags & flag) != 0; }
};

/// The newest version of the ONNX domain whose operators were reviewed; models above it are refused
/// by number.
inline constexpr std::int64_t kOnnxOpsetReviewed = 28;
inline constexpr std::int64_t kOnnxMlOpsetReviewed = 5;

/// Refuses a version of a domain that nobody looked at yet. Unknown domains are refused where an
/// operator of theirs is used.
/// Errors   Unsupported, naming domain and numbers.
Status check_opset(std::string_view domain, std::int64_t version);

/// All rows, family by family.
const std::vector<OpSchema>& all_schemas();

/// The row for `name` in opset `opset` of `domain`.
/// Errors   Unsupported when the operator is unknown (with the nearest name), too new or withdrawn.
Result<const OpSchema*> find_schema(std::string_view domain, std::string_view name,
                                    std::int64_t opset);

/// Number of inputs or outputs a signature takes: {least, most}; most is -1 for any number.
struct Arity {
  int least;
  int most;
};
Arity input_arity(const Signature& signature);
Arity output_arity(const Signature& signature);

}  // namespace sardonyx
