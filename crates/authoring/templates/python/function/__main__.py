"""Serves the function: python -m function --insecure."""

import click
from crossplane.function import cli

from function import fn


@click.command()
@cli.standard_options
def main(**options):
    """Serve the function."""
    cli.run(fn.FunctionRunner(), **options)


if __name__ == "__main__":
    main()
