"""Plans come from a model: whatever it answers, the verdict is quick, short and right."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.build.plan import MOST_PROBLEMS, Plan, PlannedTask, problems, run_order
from domain.errors import InvalidPlan


def task(name: str, *after: str) -> PlannedTask:
    return PlannedTask(id=name, title=name, instructions="Do it.", files=("src/a.py",), tests=(), depends_on=after)


def plan(*tasks: PlannedTask) -> Plan:
    return Plan(summary="s", tasks=tasks)


def found(*tasks: PlannedTask) -> str:
    return "\n".join(problems(plan(*tasks), max_tasks=50))


NAMES = st.sampled_from(["a", "b", "c", "d", "e", "no such", "", "A"])
TASKS = st.builds(
    PlannedTask,
    id=NAMES,
    title=st.text(max_size=3),
    instructions=st.text(max_size=3),
    files=st.lists(st.text(max_size=5), max_size=2).map(tuple),
    tests=st.lists(st.text(max_size=5), max_size=2).map(tuple),
    depends_on=st.lists(NAMES, max_size=3).map(tuple),
)
WILD_PLANS = st.lists(TASKS, max_size=6).map(lambda tasks: plan(*tasks))


@st.composite
def graphs(draw: st.DrawFn) -> Plan:
    """Any graph of known tasks, cycles included, in any order."""
    names = [f"t{n}" for n in range(draw(st.integers(1, 7)))]
    tasks = [task(name, *draw(st.lists(st.sampled_from(names), max_size=3))) for name in names]
    return plan(*draw(st.permutations(tasks)))


@st.composite
def dags(draw: st.DrawFn) -> Plan:
    """Usable graphs: each task depends on earlier ones only, then they are shuffled."""
    names = [f"t{n}" for n in range(draw(st.integers(1, 7)))]
    tasks = [
        task(name, *draw(st.lists(st.sampled_from(names[:at]), max_size=3) if at else st.just([])))
        for at, name in enumerate(names)
    ]
    return plan(*draw(st.permutations(tasks)))


@given(dags())
def test_a_dag_is_usable_and_runs_each_task_once_after_what_it_needs(usable: Plan) -> None:
    assert problems(usable, max_tasks=50) == ()
    order = run_order(usable)
    assert sorted(order) == sorted(t.id for t in usable.tasks)
    for each in usable.tasks:
        assert all(order.index(needed) < order.index(each.id) for needed in each.depends_on)


@given(graphs())
def test_a_plan_without_problems_has_an_order_and_one_with_a_cycle_has_none(graph: Plan) -> None:
    if problems(graph, max_tasks=50):
        with pytest.raises(InvalidPlan, match="cycle"):
            run_order(graph)
    else:
        assert len(run_order(graph)) == len(graph.tasks)


@given(WILD_PLANS)
def test_whatever_a_model_plans_the_verdict_and_the_order_agree(wild: Plan) -> None:
    sentences = problems(wild, max_tasks=5)
    assert len(sentences) <= MOST_PROBLEMS
    if not sentences:
        assert len(run_order(wild)) == len(wild.tasks)


@given(dags())
def test_the_first_task_that_needs_nothing_comes_first(usable: Plan) -> None:
    assert run_order(usable)[0] == next(t.id for t in usable.tasks if not t.depends_on)


@given(st.permutations(["a", "b", "c", "d"]))
def test_independent_tasks_keep_the_plans_own_order(names: list[str]) -> None:
    assert run_order(plan(*map(task, names))) == tuple(names)


class TestProblems:
    def test_a_plan_needs_a_task(self) -> None:
        assert found() == "the plan has no task"

    def test_too_many_tasks_are_counted(self) -> None:
        assert problems(plan(task("a"), task("b")), max_tasks=1) == ("the plan has 2 tasks, at most 1 are allowed",)

    def test_a_task_that_needs_itself_is_a_cycle(self) -> None:
        assert "cycle: 'a' → 'a'" in found(task("a", "a"))

    def test_a_cycle_is_shown(self) -> None:
        assert "the dependencies have a cycle: " in found(task("a", "b"), task("b", "c"), task("c", "a"))

    def test_an_unknown_dependency_is_named(self) -> None:
        assert found(task("a", "z")) == "task 'a' depends on 'z', which is no task"

    def test_the_same_id_twice_is_one_problem(self) -> None:
        assert found(task("a"), task("a")) == "task id 'a' is used more than once"

    @pytest.mark.parametrize("name", ["", "A", "a b", "../a", "a" * 41, "a\n", "-a"])
    def test_an_id_that_cannot_be_a_folder_is_refused(self, name: str) -> None:
        assert "is not lower-case letters, digits and dashes" in found(task(name))

    def test_a_task_says_what_it_is_about(self) -> None:
        assert found(replace(task("a"), title=" \n")) == "task 'a' has no title"
        assert found(replace(task("a"), instructions=" \n")) == "task 'a' has no instructions"

    @pytest.mark.parametrize("path", ["/etc/passwd", "../x", "a/../../x", ".git/config", "a\\b", "", "C:/x", "a\nb"])
    def test_a_path_outside_the_repository_is_refused(self, path: str) -> None:
        assert "task 'a' names the path" in found(replace(task("a"), files=(path,)))
        assert "task 'a' names the path" in found(replace(task("a"), tests=(path,)))

    @pytest.mark.parametrize("test", ["tests/test_a.py", "tests/", "tests/test_a.py::TestA::test_b[../x]"])
    def test_a_test_may_be_a_file_a_folder_or_one_case(self, test: str) -> None:
        assert found(replace(task("a"), tests=(test,))) == ""

    def test_long_texts_are_cut(self) -> None:
        assert len(found(task("x" * 100_000, "y" * 100_000))) < 1000


class TestSize:
    def test_a_flood_of_tasks_is_judged_at_once_in_one_sentence(self) -> None:
        flood = plan(*(task("same", *(["no"] * 5)) for _ in range(60_000)))
        started = time.process_time()
        assert len(problems(flood, max_tasks=50)) == 1
        assert time.process_time() - started < 0.5

    def test_a_flood_of_problems_is_cut_and_counted(self) -> None:
        sentences = problems(plan(task("a", *(f"x{n}" for n in range(10_000)))), max_tasks=50)
        assert len(sentences) == MOST_PROBLEMS
        assert sentences[-1] == f"and {10_000 - MOST_PROBLEMS + 1} more problems"

    def test_a_thousand_tasks_in_the_worst_order_are_ordered_quickly(self) -> None:
        chain = [task("t0"), *(task(f"t{n}", f"t{n - 1}") for n in range(1, 1000))]
        started = time.process_time()
        order = run_order(plan(*reversed(chain)))
        assert time.process_time() - started < 2
        assert order == tuple(f"t{n}" for n in range(1000))


def test_an_order_of_a_plan_that_was_not_checked_still_ends() -> None:
    for broken in (plan(task("a", "z")), plan(task("a"), task("a")), plan(task("a", "b"), task("b", "a"))):
        with pytest.raises(InvalidPlan, match="cycle, an unknown dependency or the same task twice"):
            run_order(broken)


def test_a_task_is_found_by_its_id_and_an_unknown_one_is_said() -> None:
    both = plan(task("a"), task("b", "a"))
    assert both.task("b").depends_on == ("a",)
    with pytest.raises(InvalidPlan, match="no task 'c'"):
        both.task("c")
