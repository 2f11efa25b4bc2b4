"""Model files: whole or refused, and nothing in them is trusted but this package's own types."""

import functools
import io
import json
import operator
import os
import pickle
import re
import subprocess
import sys
import zipfile

import numpy as np
import pytest
import skops.io
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import FunctionTransformer

from manyclass import GLMClassifier
from manyclass.cli.errors import CommandError
from manyclass.cli.modelfile import load, trusted_types


def test_trust_is_limited_to_estimators_of_ours():
    assert trusted_types()
    assert all(name.startswith("manyclass") for name in trusted_types())


def test_a_model_loads_with_only_manyclass_types_trusted(iris_model):
    assert set(skops.io.get_untrusted_types(file=iris_model)) <= trusted_types()


def test_round_trip(iris_model, iris):
    model = load(iris_model)
    assert model.schema.feature_names == ("sl", "sw", "pl", "pw")
    assert model.schema.target_name == "kind"
    assert model.schema.labels == ["setosa", "versi,color", "virginica"]
    assert model.estimator.score(*iris) > 0.9
    assert model.estimator.history_[-1].duality_gap == model.estimator.duality_gap_
    assert not hasattr(model.estimator, "_skl_callbacks")


def test_an_estimator_dumped_from_python_will_do(run_ok, tmp_path, iris, iris_csv):
    skops.io.dump(LogisticRegression(max_iter=1000).fit(*iris), tmp_path / "m.skops")
    lines = run_ok("predict", tmp_path / "m.skops", iris_csv).splitlines()
    assert lines[0] == "label"
    assert len(lines) == 151


@pytest.mark.parametrize(
    "content",
    [FunctionTransformer(np.cumsum), GLMClassifier(class_weight=FunctionTransformer), FunctionTransformer(eval)],
)
def test_foreign_types_are_refused(tmp_path, content):
    skops.io.dump(content, tmp_path / "m.skops")
    with pytest.raises(CommandError, match=r"m\.skops (was not loaded because it asks for|holds no fitted model)"):
        load(tmp_path / "m.skops")


def test_foreign_types_are_never_built(tmp_path, monkeypatch):
    class Trap:
        def __setstate__(self, state):
            raise AssertionError("built")

    Trap.__module__, Trap.__qualname__ = __name__, "Trap"
    monkeypatch.setitem(globals(), "Trap", Trap)
    trap = Trap()
    trap.x = 1
    skops.io.dump({"manyclass_model": 1, "estimator": trap}, tmp_path / "m.skops")
    with pytest.raises(CommandError, match=r"asks for .*Trap"):
        load(tmp_path / "m.skops")


class Pickled:
    """Makes a folder when it is unpickled."""

    def __init__(self, trace):
        self.trace = trace

    def __reduce__(self):
        return os.mkdir, (str(self.trace),)


def archive(**members):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for name, content in members.items():
            file.writestr(name.replace("_", "."), content)
    return buffer.getvalue()


def dumped(part):
    return skops.io.dumps({"manyclass_model": 1, "estimator": part, "schema": {}})


def pickled_array(trace):
    buffer = io.BytesIO()
    np.save(buffer, np.array([Pickled(trace)]), allow_pickle=True)
    state = {"__class__": "ndarray", "__module__": "numpy", "__loader__": "NdArrayNode", "type": "numpy"}
    return archive(schema_json=json.dumps(state | {"file": "x.npy", "protocol": 2}), x_npy=buffer.getvalue())


def forged(loader, trace):
    """A model file in which `os.mkdir` is what makes the keys of a dictionary, or the estimator, of text."""
    with zipfile.ZipFile(io.BytesIO(dumped({str(trace): 1}))) as file:
        schema = json.loads(file.read("schema.json"))
    estimator = schema["content"]["estimator"]
    text = {"__class__": "str", "__module__": "builtins", "__loader__": "JsonNode", "content": json.dumps(str(trace))}
    call = {"__class__": "mkdir", "__module__": "os", "__loader__": loader, "file": None, "type": "json", "shape": text}
    call |= {"content": [text], "attrs": text, "key_types": text}
    estimator["key_types"]["content"] = [call]
    for forgery in (schema, schema | {"content": {"estimator": call, "manyclass_model": text}}):
        yield archive(schema_json=json.dumps(forgery))


LOADERS = """
    DictNode DefaultDictNode ListNode SetNode TupleNode BytesNode SliceNode FunctionNode MethodNode PartialNode TypeNode
    ConstructorFromReduceNode ObjectNode JsonNode OperatorFuncNode NdArrayNode MaskedArrayNode DTypeNode RandomStateNode
    RandomGeneratorNode SparseMatrixNode LossNode TreeNode
""".split()
PAYLOADS = {
    "pickle": lambda trace: [pickle.dumps(Pickled(trace))],
    "pickle in a zip": lambda trace: [archive(schema_json=pickle.dumps(Pickled(trace)), data_pkl=pickle.dumps(trace))],
    "array of objects": lambda trace: [pickled_array(trace)],
    "partial": lambda trace: [dumped(functools.partial(os.mkdir, str(trace)))],
    "transformer": lambda trace: [dumped(FunctionTransformer(functools.partial(os.mkdir, str(trace))))],
    "method": lambda trace: [dumped(operator.methodcaller("mkdir"))],
    **{loader: functools.partial(forged, loader) for loader in LOADERS},
}


@pytest.mark.parametrize("name", PAYLOADS)
def test_no_code_of_a_file_is_run(tmp_path, name):
    trace = tmp_path / "trace"
    for content in PAYLOADS[name](trace):
        (tmp_path / "m.skops").write_bytes(content)
        with pytest.raises(CommandError, match=r"not a model, or is damaged|was not loaded because it asks for"):
            load(tmp_path / "m.skops")
        assert not trace.exists()


@pytest.mark.parametrize("cut", [0, 1, 100, 0.5, -1])
def test_cut_files_are_refused(iris_model, cut):
    content = iris_model.read_bytes()
    iris_model.write_bytes(content[: int(cut * len(content)) if isinstance(cut, float) else cut])
    with pytest.raises(CommandError, match="not a model, or is damaged"):
        load(iris_model)


def test_arrays_hold_the_numbers_they_announce(tmp_path, iris_model):
    with zipfile.ZipFile(iris_model) as whole, zipfile.ZipFile(tmp_path / "m.skops", "w") as damaged:
        for name in whole.namelist():
            # As many bytes, of which the shape takes some of the padding behind it.
            content = re.sub(rb"\((\d+), ?(\d*)\), \} {9}", rb"(\g<1>999999999, \2), }", whole.read(name))
            damaged.writestr(name, content)
    with pytest.raises(CommandError, match="not a model, or is damaged") as refused:
        load(tmp_path / "m.skops")
    assert "announces more numbers than it holds" in str(refused.value.__cause__)


def test_files_of_later_versions_are_refused(tmp_path):
    skops.io.dump({"manyclass_model": 99}, tmp_path / "m.skops")
    with pytest.raises(CommandError, match="written by a newer manyclass"):
        load(tmp_path / "m.skops")


@pytest.mark.parametrize("content", [{"a": 1}, [1, 2], LogisticRegression()])
def test_other_objects_are_refused(tmp_path, content):
    skops.io.dump(content, tmp_path / "m.skops")
    with pytest.raises(CommandError, match="holds no fitted model"):
        load(tmp_path / "m.skops")


def test_models_do_not_hold_what_the_rows_they_were_fitted_to_give_away(run_ok, tmp_path, iris_csv):
    """Of SDCA there is a dual variable for every row and class."""
    path = tmp_path / "sdca.skops"
    run_ok("fit", iris_csv, "--solver", "sdca", "--output", path)
    model = load(path)
    assert not hasattr(model.classifier, "dual_coef_") and model.classifier.coef_.shape == (3, 4)


def test_models_are_loaded_without_pytorch(iris_model):
    """skops imports all of scikit-learn, a module of which would take seconds for it."""
    code = (
        f"import sys; from manyclass.cli.modelfile import load; load(__import__('pathlib').Path({str(iris_model)!r}))"
    )
    subprocess.run([sys.executable, "-c", f"{code}; assert 'torch' not in sys.modules"], check=True)
