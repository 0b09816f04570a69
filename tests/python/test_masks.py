"""What the analysis claims of masks, element by element against ONNX Runtime: every program of mask_programs.py in random
spellings, and the same programs with one thing changed. bench/masks.py does thousands of them."""

import onnx.parser
import pytest
from conftest import BUILD

import mask_oracle
import mask_programs

SPELLINGS = 6  # of each program, beside the plain one
REWRITES = 3
MUTANTS = 4


@pytest.fixture(scope="module")
def tool():
    started = mask_oracle.Tool(BUILD)
    yield started
    started.close()


@pytest.mark.parametrize("name", sorted(mask_programs.PROGRAMS))
def test_the_plain_program_is_understood(tool, name):
    found, word, wrong = mask_oracle.check(tool, name, 0, plain=True)
    assert wrong is None
    assert found, word


def test_other_spellings_are_understood_or_declined(tool):
    checked = [(name, seed, *mask_oracle.check(tool, name, seed, sizes=mask_oracle.SIZES[:3]))
               for name in sorted(mask_programs.PROGRAMS) for seed in range(1, SPELLINGS + 1)]
    assert [(name, seed, wrong) for name, seed, _, _, wrong in checked if wrong] == []
    declined = [(name, seed, word) for name, seed, found, word, _ in checked if not found]
    assert len(declined) <= 0.05 * len(checked), declined


def test_rewritten_programs_are_understood_or_declined(tool):
    checked = [(name, seed, *mask_oracle.check(tool, name, seed, rewrites=True, sizes=mask_oracle.SIZES[:3]))
               for name in sorted(mask_programs.PROGRAMS) for seed in range(REWRITES)]
    assert [(name, seed, wrong) for name, seed, _, _, wrong in checked if wrong] == []
    declined = [(name, seed, word) for name, seed, found, word, _ in checked if not found]
    assert len(declined) <= 0.1 * len(checked), declined


def test_what_is_claimed_of_changed_programs_holds(tool):
    checked = [(name, seed, *mask_oracle.check_mutant(tool, name, seed, sizes=mask_oracle.SIZES[:3]))
               for name in sorted(mask_programs.PROGRAMS) for seed in range(1000, 1000 + MUTANTS)]
    assert [(name, seed, wrong) for name, seed, wrong, _ in checked if wrong] == []
    assert sum(compared for _, _, _, compared in checked) > 0.3 * len(checked)


@pytest.mark.parametrize("name", sorted(mask_programs.WRAPPING))
def test_integers_that_wrap_around_are_no_numbers(tool, name):
    model = onnx.parser.parse_model(mask_programs.write_wrapping(name))
    assert mask_oracle.disagreement(model, mask_oracle.ask(tool, model), [1], mask_oracle.SIZES) is None


@pytest.mark.parametrize("name,assumption,word", [
    ("m4", "attention_mask=ones", "causal_bottom_right"),
    ("m5", "attention_mask=ones", "causal_bottom_right"),
    ("m7", "attention_mask=ones", "causal_bottom_right"),
    ("d1", "attention_mask=ones", "none"),
    ("d3", "attention_mask=binary", "padding"),
    ("m4", "attention_mask=left-padded", "causal_bottom_right+padding"),
    ("m4", "attention_mask=right-padded", "causal_bottom_right+padding"),
    ("d7", "padded=ones", "explicit"),  # true = masked: nothing is attended to
])
def test_assumptions_of_the_user(tool, tmp_path, name, assumption, word):
    path = tmp_path / "mask.onnxtxt"
    path.write_text(mask_programs.write(name, 0, plain=True)[0])
    answer = tool.ask(str(path), [assumption])
    assert answer["word"] == word
    assert any("--assume" in sentence for sentence in answer["assumptions"])
