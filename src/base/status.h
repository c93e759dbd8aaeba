#pragma once

#include <cassert>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>

namespace sardonyx {

/// What kind of thing went wrong. Each maps to one OrtErrorCode at the C boundary.
enum class Code : std::uint8_t {
  InvalidArgument,  ///< the caller passed something that does not fit
  InvalidModel,     ///< the model's bytes or graph are wrong
  InvalidProtobuf,  ///< the bytes are not a protobuf message of the expected kind
  NoSuchFile,       ///< a file is missing or cannot be read
  Unsupported,      ///< valid, but this build cannot do it
  OutOfMemory,      ///< an allocation failed or a bound on memory was exceeded
  Cancelled,        ///< the caller asked to stop
  NeedsCompiling,   ///< the model has to be compiled for this device first, or again
  Runtime,          ///< the data of this run does not fit (index out of range, shapes)
  Internal,         ///< a fault of Sardonyx itself
};

/// Success, or a code with a message and the chain of places it passed through.
/// One pointer wide; success is the null pointer, so checking costs one compare.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message)
      : failure_(std::make_unique<Failure>(Failure{code, std::move(message), {}})) {}

  bool ok() const { return failure_ == nullptr; }
  /// Must not be called on success.
  Code code() const { return assert(!ok()), failure_->code; }
  /// The message alone, without the places.
  const std::string& message() const { return assert(!ok()), failure_->message; }

  /// Adds where we were, innermost first: "loading 'a.onnx'". No effect on success.
  Status with(const std::string& context) && {
    if (failure_) failure_->context += "\n  while " + context;
    return std::move(*this);
  }

  /// Message and places, as a user sees it; "ok" on success.
  std::string to_string() const { return ok() ? "ok" : failure_->message + failure_->context; }

 private:
  struct Failure {
    Code code;
    std::string message;
    std::string context;
  };
  std::unique_ptr<Failure> failure_;
};

/// A value, or the Status that says why there is none.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Status failure) : state_(std::in_place_index<1>, std::move(failure)) {
    assert(!std::get<1>(state_).ok());
  }

  bool ok() const { return state_.index() == 0; }
  T& value() & { return assert(ok()), *std::get_if<0>(&state_); }
  const T& value() const& { return assert(ok()), *std::get_if<0>(&state_); }
  T&& value() && { return assert(ok()), std::move(*std::get_if<0>(&state_)); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }

  /// The failure; must not be called when there is a value.
  const Status& status() const { return assert(!ok()), *std::get_if<1>(&state_); }
  Status take_status() && { return ok() ? Status() : std::move(*std::get_if<1>(&state_)); }

 private:
  std::variant<T, Status> state_;
};

}  // namespace sardonyx

/// Returns from the enclosing function if `expression` is a failed Status.
#define SDX_TRY(expression)                                  \
  do {                                                       \
    if (::sardonyx::Status sdx_status_ = (expression); !sdx_status_.ok()) return sdx_status_; \
  } while (false)

#define SDX_CONCAT_INNER_(a, b) a##b
#define SDX_CONCAT_(a, b) SDX_CONCAT_INNER_(a, b)

/// Declares or assigns `target` from a Result, or returns its Status.
#define SDX_ASSIGN(target, expression) \
  SDX_ASSIGN_(SDX_CONCAT_(sdx_result_, __LINE__), target, expression)
#define SDX_ASSIGN_(result, target, expression)             \
  auto result = (expression);                               \
  if (!result.ok()) return std::move(result).take_status(); \
  target = std::move(result).value()
