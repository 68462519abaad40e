"""The program under test."""
import os
import subprocess


def sextant(*args):
    """What it prints; it must succeed."""
    done = subprocess.run([os.environ["SEXTANT_BIN"], *args], capture_output=True, text=True)
    assert done.returncode == 0, (args, done.stderr)
    return done.stdout
