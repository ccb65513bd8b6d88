"""The grammar of data files once more: slow, and readable at a glance. The compiled reader must agree with it."""

import re

NUMBER = re.compile(rb"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?(?=[ \t\r\n#])")
INDEX = re.compile(rb"\d+")
QID = re.compile(rb"qid:(\d{1,18})(?=[ \t\r\n#])")
BLANKS = re.compile(rb"[ \t]*")


class MalformedError(Exception):
    """All malformed lines, as (line, column)."""


def slow_read(text, limit=2**31 - 2):
    """Return the rows as (label, qid or -1, {index: value}), or raise MalformedError."""
    rows, errors = [], []
    text = text.removeprefix(b"\xef\xbb\xbf")
    lines = text.split(b"\n")
    if lines[-1] == b"":
        del lines[-1]
    for n, line in enumerate(lines, 1):
        row, bad = read_line(line + b"\n", limit)
        if bad is not None:
            errors.append((n, bad + 1))
        elif row is not None:
            rows.append(row)
    if errors:
        raise MalformedError(errors)
    return rows


def read_line(line, limit):
    """Return a row or None, and the position of what does not fit or None."""
    at = BLANKS.match(line).end()
    row, numbers = None, []
    if line[at : at + 1] not in b"\r\n#":
        label = NUMBER.match(line, at)
        if not label:
            return None, at
        numbers = [label]
        at = BLANKS.match(line, label.end()).end()
        qid = -1
        if line.startswith(b"qid:", at):
            match = QID.match(line, at)
            if not match:
                return None, at
            qid = int(match[1])
            at = BLANKS.match(line, match.end()).end()
        features = {}
        while line[at : at + 1] not in b"\r\n#":
            index = INDEX.match(line, at)
            if not index or line[index.end()] != ord(":"):
                return None, at
            if len(index[0]) > 18 or int(index[0]) > limit or int(index[0]) <= max(features, default=-1):
                return None, at
            value = NUMBER.match(line, index.end() + 1)
            if not value:
                return None, index.end() + 1
            numbers.append(value)
            features[int(index[0])] = float(value[0])
            at = BLANKS.match(line, value.end()).end()
        row = float(label[0]), qid, features
    if line[at] == ord("\r") and line[at + 1] != ord("\n"):
        return None, at
    for match in numbers:
        if abs(float(match[0])) == float("inf"):
            return None, match.start()
    return row, None
