"""``hinge toy`` as a person starts and ends it."""

import re
import signal
import subprocess
import sys
import urllib.request


def test_it_says_where_it_is_and_ends_with_ctrl_c():
    command = [sys.executable, "-m", "hinge.cli", "toy", "--no-browser", "--port", "0", "http://x/#abc"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        first = process.stdout.readline()
        address = re.search(r"http://127\.0\.0\.1:\d+/\S+", first)[0]
        assert address.endswith("/#abc")
        with urllib.request.urlopen(address.split("#")[0], timeout=30) as response:
            assert b"Hinge" in response.read()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    assert process.returncode == 0
    assert "Traceback" not in errors
