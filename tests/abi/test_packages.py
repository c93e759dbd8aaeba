"""Model packages through the C interface: what is in one, which variant fits, a session of it."""

import ctypes
import json

import pytest
from interface import Failure, model_bytes

TABLE = "OrtModelPackageApi"
DIGEST = "ab" * 32
CPU = "CPUExecutionProvider"


def variant(**fields):
    """A variant for the processor with a model in its folder."""
    return {"ep": CPU, "executor_info": {"ort": {"model_file": "model.onnx"}}, **fields}


def manifest(variants, **fields):
    """A manifest with one component, `a`."""
    return {"schema_version": "1.0", "components": {"a": {"variants": variants}}, **fields}


@pytest.fixture
def package(tmp_path):
    """Write a package; files are given by path as text, objects or None for the model."""

    def write(content, files=()):
        root = tmp_path / "package"
        for path, what in {"manifest.json": content, **dict(files)}.items():
            target = root / path
            target.parent.mkdir(parents=True, exist_ok=True)
            if what is None:
                target.write_bytes(model_bytes())
            else:
                target.write_text(what if isinstance(what, str) else json.dumps(what))
        return root

    return write


@pytest.fixture
def packages(api, env, options):
    """The functions of the table, with handles that are released in the end."""

    class Packages:
        def __init__(self):
            self.opened = []

        def keep(self, handle, kind):
            self.opened.append((kind, handle))
            return handle

        def open(self, root):
            made = api.make("CreateModelPackageContext", str(root), table=TABLE)
            return self.keep(made, "ModelPackageContext")

        def select(self, context, component="a"):
            made = api.make(
                "CreateModelPackageOptionsFromSessionOptions", env, options, table=TABLE
            )
            self.keep(made, "ModelPackageOptions")
            chosen = api.make("SelectComponent", context, component, made, table=TABLE)
            return self.keep(chosen, "ModelPackageComponentContext")

        def name(self, chosen):
            return api.text("ModelPackageComponent_GetSelectedVariantName", chosen, table=TABLE)

        def session(self, chosen, session_options=None):
            return api.make("CreateSession", env, chosen, session_options, table=TABLE)

        def resolve(self, context, base, reference, must_exist=0):
            return api.text(
                "ModelPackage_ResolveStringRef", context, base, reference, must_exist, table=TABLE
            )

    made = Packages()
    yield made
    for kind, handle in reversed(made.opened):
        api.call(TABLE, f"Release{kind}", handle)


def test_a_package_is_listed_in_the_order_of_its_manifest(api, package, packages):
    content = manifest({"v2": variant(device="cpu"), "v1": variant(), "v0": {}})
    content["components"]["b"] = "inner"
    root = package(
        content,
        {
            "v2/model.onnx": None,
            "inner/component.json": {"variants": {"w": variant()}},
            "inner/w/model.onnx": None,
        },
    )
    context = packages.open(root)
    version = api.number("ModelPackage_GetSchemaVersion", context, kind=ctypes.c_int64, table=TABLE)
    assert version == 1
    assert api.number("ModelPackage_GetComponentCount", context, table=TABLE) == 2
    assert api.texts("ModelPackage_GetComponentNames", context, table=TABLE) == ["a", "b"]
    assert api.number("ModelPackage_GetVariantCount", context, "a", table=TABLE) == 3
    names = api.texts("ModelPackage_GetVariantNames", context, "a", table=TABLE)
    assert names == ["v2", "v1", "v0"]
    providers = [
        api.text("ModelPackage_GetVariantEpName", context, "a", name, table=TABLE) for name in names
    ]
    assert providers == [CPU, CPU, None]
    for arguments in [("a", "zz"), ("zz", "v1")]:
        with pytest.raises(Failure, match="zz") as error:
            api.text("ModelPackage_GetVariantEpName", context, *arguments, table=TABLE)
        assert error.value.code == 2
    chosen = packages.select(context)
    assert packages.name(chosen) == "v2"
    folder = api.text("ModelPackageComponent_GetSelectedVariantFolderPath", chosen, table=TABLE)
    assert folder == str(root / "v2")
    assert packages.name(packages.select(context, "b")) == "w"


def test_the_session_of_a_variant_runs_with_its_options(api, package, packages, run, options):
    info = {
        "model_file": "sub/m.onnx",
        "session_options": {
            "session.intra_op_num_threads": "1",
            "session.model_external_initializers_file_folder_path": "weights",
        },
    }
    content = manifest({"v": {"ep": CPU, "executor_info": {"ort": "info.json"}}})
    root = package(content, {"v/info.json": info, "v/sub/m.onnx": None, "v/weights/x": ""})
    chosen = packages.select(packages.open(root))
    for session_options in (None, options):
        session = packages.session(chosen, session_options)
        assert run(session, [1, 1], [1, 2]) == [4, 6]
        api.ReleaseSession(session)


def test_a_variant_for_another_device_or_provider_is_not_chosen(package, packages):
    root = package(
        manifest(
            {
                "gpu": variant(device="gpu"),
                "other": variant(ep="OtherExecutionProvider"),
                "any": {},
                "cpu": variant(device="cpu", compatibility_string="anything"),
                "later": variant(),
            }
        )
    )
    assert packages.name(packages.select(packages.open(root))) == "cpu"
    root = package(manifest({"gpu": variant(device="gpu"), "odd": variant(device="tpu")}))
    with pytest.raises(Failure, match="No suitable model variant") as error:
        packages.select(packages.open(root))
    assert error.value.code == 1
    with pytest.raises(Failure, match="Component model not found") as error:
        packages.select(packages.open(root), "zz")
    assert error.value.code == 2


def test_what_a_session_cannot_use_is_refused(package, packages):
    cases = [
        ({"executor_info": {}}, "model_file", 1),
        ({"executor_info": {"ort": {"model_file": "none.onnx"}}}, "none.onnx", 3),
        (
            {
                "executor_info": {
                    "ort": {"model_file": "model.onnx", "provider_options": {"a": "b"}}
                }
            },
            "provider",
            9,
        ),
        (
            {
                "executor_info": {
                    "ort": {
                        "model_file": "model.onnx",
                        "session_options": {"session.intra_op_num_threads": "x"},
                    }
                }
            },
            "base-10 int32",
            2,
        ),
    ]
    for fields, text, code in cases:
        root = package(manifest({"v": variant(**fields)}), {"v/model.onnx": None})
        chosen = packages.select(packages.open(root))
        with pytest.raises(Failure, match=text) as error:
            packages.session(chosen)
        assert error.value.code == code


NESTED = json.loads("[" * 100 + "]" * 100)
LONG = {f"{i}": 0 for i in range(40000)}

WRONG = [
    ("{", "JSON"),
    ("[]", "object"),
    ({"components": {}}, "schema_version"),
    ({"schema_version": "1.0"}, "components"),
    ({"schema_version": "2.0", "components": {}}, "2.0"),
    ({"schema_version": "0.9", "components": {}}, "0.9"),
    ({"schema_version": "x", "components": {}}, "schema_version"),
    ({"schema_version": "1.0", "components": []}, "components"),
    ({"schema_version": "1.0", "components": {"a": 3}}, "'a'"),
    ({"schema_version": "1.0", "components": {"a": {}}}, "variants"),
    ({"schema_version": "1.0", "components": {"a": "none"}}, "none"),
    ({"schema_version": "1.0", "components": {"a": "../x"}}, "leads out"),
    ({"schema_version": "1.0", "components": {"a": "/etc"}}, "leads out"),
    (manifest({}, zz=1), "'zz'"),
    (manifest({}, layout="loose"), "loose"),
    (manifest({"v": {"zz": 1}}), "'zz'"),
    (manifest({"v": {"ep": 3}}), "'ep'"),
    (manifest({"v": {"variant_directory": "none"}}), "none"),
    (manifest({"v": {"variant_directory": "../v"}}), "leads out"),
    (manifest({"../v": {}}), "leads out"),
    (manifest({"v": {"executor_info": 3}}), "executor_info"),
    (manifest({"v": {"executor_info": {"ort": 3}}}), "'ort'"),
    (manifest({"v": {"executor_info": {"other": "none.json"}}}), "none.json"),
    (manifest({"v": {"executor_info": {"ort": {"model_file": 3}}}}), "model_file"),
    (manifest({"v": {"executor_info": {"ort": {"model_file": "../../m"}}}}), "leads out"),
    (
        manifest({"v": {"executor_info": {"ort": {"model_file": f"sha256:{DIGEST}/m"}}}}),
        "shared asset",
    ),
    (manifest({"v": {"executor_info": {"ort": {"session_options": []}}}}), "session_options"),
    (manifest({"v": {"executor_info": {"ort": {"session_options": {"k": 1}}}}}), "strings"),
    (
        manifest(
            {
                "v": {
                    "executor_info": {
                        "ort": {"session_options": {"session.optimized_model_filepath": "/x"}}
                    }
                }
            }
        ),
        "may not set",
    ),
    (manifest({}, shared_assets={"x": "y"}), "'x'"),
    (manifest({}, shared_assets={f"sha256:{DIGEST}": "../y"}), "leads out"),
    ('{"schema_version":"1.0","components":' + "[" * 100000, "nested deeper"),
    ({"schema_version": "1.0", "components": {}, "additional_metadata": NESTED}, "nested deeper"),
    ({"schema_version": "1.0", "components": {}, "additional_metadata": LONG}, "entries"),
]


@pytest.mark.parametrize(("content", "text"), WRONG, ids=range(len(WRONG)))
def test_a_wrong_package_is_refused_with_the_reason(package, packages, content, text):
    root = package(content, {"v/x": ""})
    with pytest.raises(Failure, match=text) as error:
        packages.open(root)
    assert error.value.code == 1


def test_what_is_no_package_is_refused(api, packages, tmp_path):
    file = tmp_path / "file"
    file.write_text("x")
    for path in (tmp_path / "none", file, tmp_path):
        with pytest.raises(Failure) as error:
            packages.open(path)
        assert error.value.code == 1
    for name in ("Context", "Options", "ComponentContext"):
        api.call(TABLE, f"ReleaseModelPackage{name}", None)


def test_newer_minor_versions_may_have_more_fields(api, package, packages):
    content = manifest({"v": variant(more=1)}, more=2)
    content["schema_version"] = "1.7"
    context = packages.open(package(content))
    assert api.texts("ModelPackage_GetVariantNames", context, "a", table=TABLE) == ["v"]
    content = manifest({})
    content["schema_version"] = 1
    packages.open(package(content))


def test_references_stay_in_a_portable_package(package, packages, tmp_path):
    asset = f"shared_assets/sha256-{DIGEST}"
    root = package(manifest({}), {f"{asset}/t.txt": "", "f.txt": "", "d/g.txt": ""})
    (root / "link").symlink_to(tmp_path)
    context = packages.open(root)
    good = [
        (None, "f.txt", 1, "f.txt"),
        (str(root / "d"), "g.txt", 1, "d/g.txt"),
        (str(root / "d"), "none", 0, "d/none"),
        (None, f"sha256:{DIGEST}", 1, asset),
        (None, f"sha256:{DIGEST}/t.txt", 1, f"{asset}/t.txt"),
        (None, "sha256:zz", 0, "sha256:zz"),
    ]
    for base, reference, must_exist, expected in good:
        assert packages.resolve(context, base, reference, must_exist) == str(root / expected)
    bad = [
        (None, "", 0),
        (None, "../x", 0),
        (None, "d/../f.txt", 0),
        (None, "/etc/passwd", 0),
        ("/etc", "passwd", 0),
        (None, "link/other", 0),
        (str(root / "d"), "none", 1),
        (None, f"sha256:{'cd' * 32}", 0),
        (None, f"sha256:{DIGEST}/../x", 0),
        (None, f"sha256:{DIGEST}/none", 1),
    ]
    for base, reference, must_exist in bad:
        with pytest.raises(Failure) as error:
            packages.resolve(context, base, reference, must_exist)
        assert error.value.code == 1


def test_an_installed_package_may_lead_elsewhere(package, packages, tmp_path):
    (tmp_path / "elsewhere.onnx").write_bytes(model_bytes())
    content = manifest(
        {"v": variant(executor_info={"ort": {"model_file": "../../elsewhere.onnx"}})},
        layout="installed",
    )
    context = packages.open(package(content))
    assert packages.resolve(context, None, "/etc", 1) == "/etc"
    assert packages.name(packages.select(context)) == "v"
    with pytest.raises(Failure):
        packages.resolve(context, None, f"sha256:{DIGEST}", 0)
