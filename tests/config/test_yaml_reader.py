"""The strict YAML reader: what it takes, what it refuses, and where it says the fault is."""

from __future__ import annotations

import pytest

from oyez.yaml_reader import MAX_BYTES, Mark, Scalar, Sequence, Tree, Unusable, read


def only_problem(text: str) -> tuple[int, int, str]:
    _, problems = read(text)
    (problem,) = problems
    return problem.mark.line, problem.mark.column, problem.text


def tree_of(text: str) -> Tree:
    tree, problems = read(text)
    assert problems == []
    assert isinstance(tree, Tree)
    return tree


@pytest.mark.parametrize("text", ["", "\n\n", "# a comment\n", "\ufeff", "\ufeff# a comment\r\n"])
def test_a_text_without_content_has_no_tree_and_no_problem(text):
    assert read(text) == (None, [])


def test_keys_and_values_know_their_line_and_column():
    tree = tree_of("# comment\nvad:\n  engine: webrtc\n")
    assert tree.entries["vad"].mark == Mark(2, 1)
    section = tree.entries["vad"].value
    assert isinstance(section, Tree)
    assert section.entries["engine"].mark == Mark(3, 3)
    assert section.entries["engine"].value == Scalar(Mark(3, 11), "webrtc", plain=True)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("start", ["", "\ufeff"])
def test_any_line_end_and_a_byte_order_mark_give_the_same_tree(start, end):
    text = "a:\n  b: 1\nc: [x, 'y']\n"
    assert read(start + text.replace("\n", end)) == read(text)


def test_a_column_counts_characters_and_not_bytes():
    assert tree_of('{"äöü€😀": x, b: y}').entries["b"].mark == Mark(1, 14)


@pytest.mark.parametrize(
    "word", ["no", "yes", "on", "off", "12:30", "0x1F", "0o17", "017", "1_000", "2024-01-01", "1e3"]
)
def test_a_scalar_stays_the_text_that_was_typed(word):
    assert tree_of(f"a: {word}").entries["a"].value == Scalar(Mark(1, 4), word, plain=True)


def test_quotes_and_text_blocks_are_told_from_plain_text():
    tree = tree_of("a: x\nb: 'x'\nc: \"x\"\nd: |\n  x\n")
    plain = {
        name: entry.value.plain
        for name, entry in tree.entries.items()
        if isinstance(entry.value, Scalar)
    }
    assert plain == {"a": True, "b": False, "c": False, "d": False}


@pytest.mark.parametrize(
    ("value", "is_null"),
    [("", True), ("~", True), ("null", True), ("Null", True), ('""', False), ("'null'", False)],
)
def test_nothing_is_told_from_an_empty_text(value, is_null):
    scalar = tree_of(f"a: {value}").entries["a"].value
    assert isinstance(scalar, Scalar)
    assert scalar.is_null is is_null


def test_a_key_that_is_set_twice_is_refused_with_both_lines():
    _, problems = read("vad:\n  engine: a\n  x: b\n  engine: c\n")
    assert [(p.mark, p.key) for p in problems] == [(Mark(4, 3), "vad.engine")]
    assert problems[0].text == "set twice, first on line 2, remove one of the two"


def test_the_same_key_in_two_sections_is_no_duplicate():
    tree_of("vad: {engine: a}\nvoice: {engine: b}\n")


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("a:\n\tb: 1\n", 2, 1),
        ("a:\n  b: 1\n\tc: 2\n", 3, 1),
        ("a:\n  b: 1\n  \tc: 2\n", 3, 3),
        ("a:\t1\n", 1, 3),
        ("a: [1,\t2]\n", 1, 7),
    ],
)
def test_a_tab_is_explained_in_one_line_where_it_stands(text, line, column):
    said = "a tab, but YAML takes spaces alone, put two spaces in its place"
    assert only_problem(text) == (line, column, said)


def test_a_tab_in_a_comment_or_in_quotes_is_no_fault():
    assert tree_of("# a\tb\na: 'b\tc' #\td\n").entries["a"].value == Scalar(
        Mark(2, 4), "b\tc", plain=False
    )


@pytest.mark.parametrize(
    ("text", "line", "column", "said"),
    [
        ("a: 'b\nc: d\n", 1, 4, "a quote that is opened here is never closed"),
        ('a: "b\n---\n', 1, 4, "a quote that is opened here is never closed"),
        ("a: {b: 1\nc: 2\n", 1, 4, "a brace { that is opened here is not closed as it should be"),
        ("a: [1, 2\nc: 2\n", 1, 4, "a bracket [ that is opened here is not closed"),
        ("vad\nvoice: {}\n", 2, 6, "a colon in a place where no key can stand"),
        ("a: b: c\n", 1, 5, "a colon in a place where no key can stand"),
        ("a:\n  b: 1\n c: 2\n", 3, 2, "indented differently from the lines before it"),
        ("a: 1\nhangover\n", 2, 1, "a key without a colon, write key: value"),
        ("a: [Who?]\n", 1, 8, "a text with a question mark needs quotes between brackets"),
        ("a: {b: Who?}\n", 1, 11, "a text with a question mark needs quotes between brackets"),
        ("a: [:]\n", 1, 5, "a value is missing here"),
        ("a: @b\n", 1, 4, "a text that begins with this character needs quotes"),
        ("a: `b\n", 1, 4, "a text that begins with this character needs quotes"),
        ('a: "\\q"\n', 1, 6, "a backslash in double quotes begins an escape"),
        ('a: "\\UFFFFFFFF"\n', 1, 7, "not valid YAML"),
    ],
)
def test_a_syntax_error_is_explained_where_it_stands(text, line, column, said):
    at_line, at_column, problem = only_problem(text)
    assert (at_line, at_column) == (line, column)
    assert said in problem


@pytest.mark.parametrize(
    ("text", "line", "column", "code"),
    [
        ("a: b\nc\x00d", 2, 2, "U+0000"),
        ("\x1b[31m", 1, 1, "U+001B"),
        ("a: '\u2028'", 1, 5, "U+2028"),
        ("a: 1\n\ufeff", 2, 1, "U+FEFF"),
        ("a: '\ud800'", 1, 5, "U+D800"),
    ],
)
def test_a_character_that_may_not_stand_in_yaml_is_named(text, line, column, code):
    assert only_problem(text) == (line, column, f"the character {code} may not stand here")


def test_an_anchor_is_refused_and_its_aliases_do_not_multiply_anything():
    laughs = "a: &a [x, x]\n" + "".join(
        f"{chr(98 + n)}: &{chr(98 + n)} [*{chr(97 + n)}, *{chr(97 + n)}]\n" for n in range(20)
    )
    line, column, said = only_problem(laughs)
    assert (line, column) == (1, 4)
    assert said.startswith("anchors (&name) and aliases (*name) are not supported")
    tree, _ = read(laughs)
    assert isinstance(tree, Tree)
    assert tree.entries["b"].value == Sequence(
        Mark(2, 4), (Unusable(Mark(2, 8)), Unusable(Mark(2, 12)))
    )


@pytest.mark.parametrize(
    ("value", "tag"),
    [
        ("!!python/object/apply:os.system [ls]", "!!python/object/apply:os.system"),
        ("!!int 5", "!!int"),
        ("!mine {b: 1}", "!mine"),
        ("! b", "!"),
    ],
)
def test_a_tag_is_refused_by_name_and_its_value_is_not_used(value, tag):
    tree, problems = read(f"a: {value}\n")
    assert [(p.mark, p.key, p.text) for p in problems] == [
        (Mark(1, 4), "a", f"tags are not supported, remove {tag}")
    ]
    assert isinstance(tree, Tree)
    assert tree.entries["a"].value == Unusable(Mark(1, 4))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("<<: {a: 1}\n", "merge keys (<<) are not supported, write the keys out"),
        ("? [a]\n: 1\n", "a list or a mapping cannot be a key, write a word"),
        ("? {a: 1}\n: 1\n", "a list or a mapping cannot be a key, write a word"),
        ("?\n: 1\n", "a key is missing before the colon"),
        ("~: 1\n", "a key is missing before the colon"),
        ("a: 1\n---\nb: 2\n", "a second document begins, remove the ---"),
        ("a: 1\n---\n", "a second document begins, remove the ---"),
    ],
)
def test_what_settings_do_not_need_of_yaml_is_refused_by_name(text, said):
    assert only_problem(text)[2] == said


def test_one_document_may_be_marked_as_such():
    assert tree_of("%YAML 1.2\n---\na: 1\n...\n").entries["a"].mark == Mark(3, 1)


@pytest.mark.parametrize("open_", ["[", "{a: ", "- ", "? "])
def test_nesting_without_end_is_refused_and_not_followed(open_):
    assert only_problem(open_ * 10_000)[2] == "nested more than 16 levels deep"


def test_a_text_larger_than_any_configuration_is_refused_unread():
    assert read("#" * MAX_BYTES) == (None, [])
    assert only_problem("#" * (MAX_BYTES + 1)) == (
        1,
        1,
        "larger than 64 KiB, so no configuration of Oyez",
    )


def test_faults_before_a_syntax_error_are_told_with_it():
    tree, problems = read("a: 1\na: 2\nb: 'c\n")
    assert tree is None
    assert [p.mark.line for p in problems] == [2, 3]
