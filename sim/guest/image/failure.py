"""Failure: the reason why no image can be made, in one line."""
import subprocess


class Failure(Exception):
    """The text is a message for the user."""


def output_of(command, what, **options):
    """Returns the standard output of a tool. Raises Failure with the tool's last words if the tool fails."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
                              check=False, **options)
    except FileNotFoundError:
        raise Failure(f"{command[0]} is not installed; {what} needs this program") from None
    if done.returncode != 0:
        words = [line for line in done.stderr.splitlines() if line.strip()] or [f"exit status {done.returncode}"]
        # If the tool ran another tool, the last line is often without the cause.
        telling = [line for mark in ("No space left", "E: ") for line in words if mark in line]
        raise Failure(f"{what}: {command[0]} says: {[*telling, words[-1]][0].removeprefix('E: ')}")
    return done.stdout
