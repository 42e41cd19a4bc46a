"""Whether a build can go on by itself, or only when a person answers."""

from __future__ import annotations

from domain.trace.parts import BuildDetails, TaskDetails

AT_WORK = ("running", "written")


def only_a_person_helps(details: BuildDetails) -> bool:
    """Something waits for an answer, and nothing else runs or could start."""
    asked = {ask.task for ask in details.open_asks()}
    if not asked:
        return False
    if details.phase != "tasks":
        return True
    return not any(_goes_on(details, task) for task in details.tasks.values() if task.task not in asked)


def _goes_on(details: BuildDetails, task: TaskDetails) -> bool:
    if task.status in AT_WORK:
        return True
    ready = all(details.tasks[name].status == "merged" for name in task.depends_on if name in details.tasks)
    return task.status == "waiting" and ready and not details.paused
