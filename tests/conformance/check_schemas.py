"""Compares the operator rows with the history of operators that the onnx package knows.

    check_schemas.py PATH_OF_evaluate_cases [--onnxruntime]

Every operator and version of the standard has to have a row with the same numbers of inputs and
outputs, the same attributes (names, kinds, which are required) and at least the same element types
of inputs; and no row may be of a version that the standard does not have. What differs on purpose
stands in DIFFERENCES, with the reason. With --onnxruntime the com.microsoft rows are compared with
that package's operators too, as far as we have them. Exits with 1 when anything else differs.
"""

import re
import subprocess
import sys

import onnx
from onnx import defs

DOMAINS = ("", "ai.onnx.ml", "ai.onnx.preview.training")
DEPRECATED = 1

# (domain, operator, since or None for all): reason.
DIFFERENCES = {
    ("", "BatchNormalization", 1): "consumed_inputs means nothing; models leave it out",
    ("", "GRU", 1): "the text calls both outputs optional, as the later versions do",
    ("", "GroupNormalization", 18): "withdrawn for its per-group scale, but models with it exist",
    ("", "LayerNormalization", 1): "ONNX Runtime's own, of before the standard had it",
    ("", "Loop", None): "the text allows both of the first two inputs to be left out",
    ("", "Resize", 11): "the text allows roi and scales to be left out",
    ("", "Scan", 8): "the first input is optional",
    ("", "SimplifiedLayerNormalization", 1): "ONNX Runtime's own, in the standard's domain",
}

KINDS = {
    "INT": "i",
    "FLOAT": "f",
    "STRING": "s",
    "TENSOR": "t",
    "GRAPH": "g",
    "SPARSE_TENSOR": "p",
    "TYPE_PROTO": "y",
    "INTS": "is",
    "FLOATS": "fs",
    "STRINGS": "ss",
    "TENSORS": "ts",
    "GRAPHS": "gs",
    "SPARSE_TENSORS": "ps",
    "TYPE_PROTOS": "ys",
}

# Names in type strings that differ from TensorProto's.
TYPE_NAMES = {"float": "FLOAT", "double": "DOUBLE"}


class Row:
    def __init__(self, line):
        fields = line.split("\t")
        self.domain, self.name, self.since = fields[0], fields[1], int(fields[2])
        inputs, outputs = fields[3].split(">")
        self.inputs, self.outputs = inputs, outputs
        self.attributes = {}
        for item in fields[4].split():
            name, kind = item.split(":")
            self.attributes[name] = (kind.rstrip("!"), kind.endswith("!"))
        self.flags = int(fields[5])
        self.sets = dict(zip("TUVW", (int(mask, 16) for mask in fields[6].split())))

    def letter(self, position):
        letters = self.inputs.rstrip("*")
        return letters[min(position, len(letters) - 1)] if letters else ""


def arity_of(letters):
    is_variadic = letters.endswith("*")
    letters = letters.rstrip("*")
    least = max((i + 1 for i, letter in enumerate(letters) if letter.isupper()), default=0)
    return least, None if is_variadic else len(letters)


def arity_in(parameters, least, most):
    """The standard counts to 2^31 - 1 where any number is allowed."""
    is_variadic = any("Variadic" in str(parameter.option) for parameter in parameters)
    return least, None if is_variadic else most


def bit_of(type_string):
    match = re.fullmatch(r"tensor\((\w+)\)", type_string)
    if match is None:
        return None
    name = TYPE_NAMES.get(match[1], match[1].upper())
    return 1 << onnx.TensorProto.DataType.Value(name)


FIXED = {
    "I": {"tensor(int64)"},
    "B": {"tensor(bool)"},
    "F": {"tensor(float)"},
    "S": {"tensor(string)"},
    "N": {"tensor(int32)", "tensor(int64)"},
}


def type_problems(row, types_of_inputs):
    for position, (name, allowed) in enumerate(types_of_inputs):
        letter = row.letter(position).upper()
        if letter in ("X", ""):
            continue
        if letter in FIXED:
            missing = allowed - FIXED[letter]
        else:
            missing = {
                text
                for text in allowed
                if bit_of(text) is None or not row.sets[letter] & bit_of(text)
            }
        if missing:
            yield f"input {name} does not take {', '.join(sorted(missing))}"


def attribute_problems(row, wanted):
    for name, (kind, is_required) in wanted.items():
        if name not in row.attributes:
            yield f"attribute {name} is missing"
        elif row.attributes[name][0] != kind:
            yield f"attribute {name} is {row.attributes[name][0]}, expected {kind}"
        elif row.attributes[name][1] != is_required:
            yield f"attribute {name} is {'' if row.attributes[name][1] else 'not '}required"
    for name in row.attributes.keys() - wanted.keys():
        yield f"attribute {name} is not the standard's"


def kind_of(attribute):
    return KINDS[str(attribute.type).split(".")[-1]]


def problems_of(row, schema):
    if schema.deprecated:
        if not row.flags & DEPRECATED:
            yield "should be marked as withdrawn"
        return
    expected = arity_in(schema.inputs, schema.min_input, schema.max_input)
    if arity_of(row.inputs) != expected:
        yield f"takes {arity_of(row.inputs)} inputs, expected {expected}"
    expected = arity_in(schema.outputs, schema.min_output, schema.max_output)
    if arity_of(row.outputs) != expected:
        yield f"makes {arity_of(row.outputs)} outputs, expected {expected}"
    wanted = {name: (kind_of(a), a.required) for name, a in schema.attributes.items()}
    yield from attribute_problems(row, wanted)
    yield from type_problems(row, [(i.name, set(i.types)) for i in schema.inputs])


class Report:
    def __init__(self):
        self.counts = {"same": 0, "explained": 0, "different": 0}

    def add(self, domain, name, since, problems):
        problems = list(problems)
        reason = DIFFERENCES.get((domain, name, since), DIFFERENCES.get((domain, name, None)))
        kind = "same" if not problems else "explained" if reason else "different"
        self.counts[kind] += 1
        for problem in problems:
            label = f"{domain}:{name}" if domain else name
            print(f"{kind}: {label} {since}: {problem}" + (f" ({reason})" if reason else ""))


def compare_standard(rows, report):
    known = set()
    for schema in defs.get_all_schemas_with_history():
        if schema.domain not in DOMAINS:
            continue
        key = (schema.domain, schema.name, schema.since_version)
        known.add(key)
        row = rows.get(key)
        report.add(*key, ["has no row"] if row is None else problems_of(row, schema))
    for key in rows.keys() - known:
        if key[0] in DOMAINS:
            report.add(*key, ["is no version of the standard's"])


def compare_onnxruntime(rows, report):
    from onnxruntime.capi import onnxruntime_pybind11_state as state

    for schema in state.get_all_operator_schema():
        row = rows.get((schema.domain, schema.name, schema.since_version))
        if schema.domain != "com.microsoft" or row is None:
            continue
        constraints = {c.type_param_str: set(c.allowed_type_strs) for c in schema.type_constraints}
        expected = arity_in(schema.inputs, schema.min_input, schema.max_input)
        problems = []
        if arity_of(row.inputs) != expected:
            problems.append(f"takes {arity_of(row.inputs)} inputs, expected {expected}")
        wanted = {name: (kind_of(a), a.required) for name, a in schema.attributes.items()}
        problems += [p for p in attribute_problems(row, wanted) if "not the standard's" not in p]
        types = [(i.name, constraints.get(i.typeStr, {i.typeStr})) for i in schema.inputs]
        problems += type_problems(row, types)
        report.add(schema.domain, schema.name, schema.since_version, problems)


def main():
    program = sys.argv[1]
    text = subprocess.run([program, "--rows"], check=True, capture_output=True, text=True).stdout
    listed = [Row(line) for line in text.splitlines()]
    rows = {(row.domain, row.name, row.since): row for row in listed}
    report = Report()
    if len(rows) != len(listed):
        report.add("", "rows", 0, ["some operators and versions are listed twice"])
    compare_standard(rows, report)
    if "--onnxruntime" in sys.argv:
        compare_onnxruntime(rows, report)
    print(", ".join(f"{count} {kind}" for kind, count in report.counts.items()))
    return 1 if report.counts["different"] else 0


if __name__ == "__main__":
    sys.exit(main())
