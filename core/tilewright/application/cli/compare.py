"""Command `tilewright compare`: several mappers under several cost models."""

from __future__ import annotations

from typing import NoReturn

import typer

from tilewright.application.api.keywords import settings_of
from tilewright.application.api.settings import CompareSettings
from tilewright.application.cli import options


@options.with_settings(CompareSettings)
def compare_command(
    flags: options.Flags,
    workload: options.Workloads,
    arch: options.ArchOfNetwork = [],  # noqa: B006 -- typer wants a list; nothing changes it
) -> None:
    """Run every mapper under every cost model, and evaluate each best mapping with all models."""
    import tilewright as tw
    from tilewright.application.api.load.kinds import is_group_file
    from tilewright.application.cli.common import print_result

    if any(map(is_group_file, workload)):
        _compare_groups(flags, workload, arch)
    if not arch:
        raise tw.errors.CallError(
            "tilewright compare: missing option '--arch'",
            hint="tilewright library archs lists them; tilewright compare --help lists its arguments",
        )
    report = tw.compare(flags.loaded(workload), arch, **flags.settings())
    print_result(report, flags.json, flags.quiet, report.messages())
    if report.unwritten is not None:
        raise typer.Exit(report.unwritten.exit_code)
    if report.complete and any(row.reports for row in report.searches):
        raise typer.Exit
    failures = [row.layer.error.exit_code for row in report.searches if row.layer.error is not None]
    raise typer.Exit(max(failures) if report.complete and len(failures) == len(report.searches) else 1)


def _compare_groups(flags: options.Flags, workload: list[str], arch: list[str]) -> NoReturn:
    """Print the comparison of group mappers. Raises CallError, and Exit."""
    import tilewright as tw
    from tilewright.application.cli.common import print_result

    settings, known = flags.settings(), settings_of(CompareSettings)
    used = ("mappers", "mapper_options", "models", "model_options", "objective", "seconds")
    given = [
        name for name in known if name in flags.chosen and (settings[name] or None) != (known[name].default or None)
    ]
    odd = [known[name].spelled[0] for name in given if name not in used]
    if len(workload) != 1 or len(arch) > 1 or odd:
        what = "a group is compared alone, with at most one architecture, --mappers, --models, their options, --objective and --seconds"
        raise tw.errors.CallError(f"{what}; not {', '.join(odd) or 'several files'}")
    report = tw.compare_groups(
        workload[0], *arch, **{name: settings[name] for name in used if settings[name] is not None}
    )
    print_result(report, flags.json, flags.quiet, report.messages())
    failures = [row.error.exit_code for row in report.searches if row.error is not None]
    if len(failures) == len(report.searches):
        raise typer.Exit(max(failures, default=1))
    raise typer.Exit(0 if report.complete else 1)
