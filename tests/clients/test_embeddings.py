"""Who puts a classifier on embeddings of text, with an encoder that looks up letters instead of a network."""

import numpy as np
import pytest

from manyclass import GLMClassifier
from manyclass.linear_model import LogisticRegression

HEADS = pytest.mark.parametrize("head", [GLMClassifier(), LogisticRegression()], ids=lambda head: type(head).__name__)
TEXTS = [f"{word} {number}" for number in range(20) for word in ("apples", "money", "songs")]
LABELS = [number % 3 for number in range(60)]


def embed(texts):
    return np.array([[text.count(letter) for letter in "adegilmnopsy "] for text in texts], dtype=np.float32)


@HEADS
def test_mteb(head):
    mteb = pytest.importorskip("mteb")
    from datasets import Dataset, DatasetDict
    from mteb.abstasks import AbsTaskClassification
    from mteb.models import ModelMeta

    class Encoder:
        mteb_model_meta = ModelMeta.create_empty({"name": "none/letters", "revision": "1"})

        def encode(self, inputs, **options):
            return np.concatenate([embed(batch["text"]) for batch in inputs])

        def similarity(self, one, other):
            return one @ other.T

        similarity_pairwise = similarity

    class Task(AbsTaskClassification):
        metadata = mteb.TaskMetadata(
            name="Words",
            description="which word",
            dataset={"path": "none/words", "revision": "1"},
            type="Classification",
            category="t2c",
            eval_splits=["test"],
            eval_langs=["eng-Latn"],
            main_score="accuracy",
        )
        evaluator_model = head
        n_experiments = 2

        def load_data(self, **options):
            part = Dataset.from_dict({"text": TEXTS, "label": LABELS})
            self.dataset, self.data_loaded = DatasetDict(train=part, test=part), True

    found = Task().evaluate(Encoder(), encode_kwargs={})
    assert found["default"]["accuracy"] > 0.95


@HEADS
def test_setfit(head, tmp_path):
    setfit = pytest.importorskip("setfit")
    import torch
    from sentence_transformers import SentenceTransformer

    class Letters(torch.nn.Module):
        def forward(self, features):
            return features | {"sentence_embedding": features["counts"]}

        def tokenize(self, texts, **options):
            return {"counts": torch.tensor(embed(texts))}

        preprocess = tokenize

        def save(self, path, *options, **more):
            pass

    model = setfit.SetFitModel(SentenceTransformer(modules=[Letters()], device="cpu"), head)
    model.fit(TEXTS, LABELS, num_epochs=1)
    assert np.mean(np.asarray(model.predict(TEXTS)) == LABELS) > 0.95
    assert np.asarray(model.predict_proba(TEXTS)).shape == (60, 3)
