"""A terminal for tests: runs a program on a pseudo-terminal and shows what a person would see.

Speaks JSON, one object a line: a request on stdin, an answer on stdout. Holds a small emulator of the
control codes that line editors use, so that tests look at the screen and not at codes.
"""

import codecs
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time
import unicodedata


def columns_of(character):
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1


class Screen:
    """Lines of cells; a wide character fills two, the second of them empty. Lines above are kept."""

    def __init__(self, columns):
        self.columns = columns
        self.lines = [[]]
        self.row = 0
        self.column = 0
        self.codes = ""
        self.plain = ""

    def line(self):
        while len(self.lines) <= self.row:
            self.lines.append([])
        return self.lines[self.row]

    def put(self, character):
        width = columns_of(character)
        if width == 0:
            return
        if self.column + width > self.columns:
            self.row += 1
            self.column = 0
        line = self.line()
        while len(line) < self.column + width:
            line.append(" ")
        line[self.column] = character
        if width == 2:
            line[self.column + 1] = ""
        self.column += width

    def control(self, parameters, final):
        numbers = [int(part) if part.isdigit() else 0 for part in parameters.split(";")]
        first = numbers[0]
        if final == "A":
            self.row = max(0, self.row - max(1, first))
        elif final == "B":
            self.row += max(1, first)
        elif final == "C":
            self.column = min(self.columns - 1, self.column + max(1, first))
        elif final == "D":
            self.column = max(0, self.column - max(1, first))
        elif final == "G":
            self.column = max(0, first - 1)
        elif final == "H":
            self.row = max(0, first - 1)
            self.column = max(0, (numbers[1] if len(numbers) > 1 else 1) - 1)
        elif final == "K":
            line = self.line()
            if first == 0:
                del line[self.column :]
            else:
                line.clear()
        elif final == "J":
            if first == 0:
                del self.line()[self.column :]
                del self.lines[self.row + 1 :]
            else:
                self.lines = [[]]

    def feed(self, text):
        self.codes += text
        while self.codes:
            character = self.codes[0]
            if character == "\x1b":
                match = re.match(r"\x1b\[([0-9;?]*)([A-Za-z])|\x1b[78=>M]", self.codes)
                if match is None:
                    if len(self.codes) > 20:
                        self.codes = self.codes[1:]
                        continue
                    return
                if match.group(2) and not match.group(1).startswith("?"):
                    self.control(match.group(1), match.group(2))
                self.codes = self.codes[match.end() :]
                continue
            self.codes = self.codes[1:]
            if character == "\r":
                self.column = 0
            elif character == "\n":
                self.plain += character
                self.row += 1
                self.line()
            elif character == "\b":
                self.column = max(0, self.column - 1)
            elif character >= " " and character != "\x7f":
                self.plain += character
                self.put(character)

    def text(self):
        return "\n".join("".join(line).rstrip() for line in self.lines)


def fork_without_signals():
    """As pty.fork, but not as the controlling terminal: nothing tells the program that it hung up."""
    master, slave = os.openpty()
    pid = os.fork()
    if pid == 0:
        os.setsid()
        for descriptor in (0, 1, 2):
            os.dup2(slave, descriptor)
        os.closerange(3, slave + 1)
        return pid, -1
    os.close(slave)
    return pid, master


class Terminal:
    def __init__(self):
        self.pid = 0
        self.descriptor = -1
        self.raw = ""
        self.seen = 0
        self.code = None
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def start(self, request):
        self.screen = Screen(request["columns"])
        pid, descriptor = pty.fork() if request["signals"] else fork_without_signals()
        if pid == 0:
            os.environ.clear()
            os.environ.update(request["env"])
            os.execvp(request["argv"][0], request["argv"])
        self.pid = pid
        self.descriptor = descriptor
        self.resize(request["columns"])

    def resize(self, columns):
        self.screen.columns = columns
        size = struct.pack("HHHH", 30, columns, 0, 0)
        fcntl.ioctl(self.descriptor, termios.TIOCSWINSZ, size)

    def read(self, seconds):
        ready, _, _ = select.select([self.descriptor], [], [], seconds)
        if not ready:
            return False
        try:
            data = os.read(self.descriptor, 65536)
        except OSError:
            data = b""
        if not data:
            if self.code is None:
                _, status = os.waitpid(self.pid, 0)
                self.code = os.waitstatus_to_exitcode(status)
            return False
        text = self.decoder.decode(data)
        self.raw += text
        self.screen.feed(text)
        return True

    def wait(self, pattern, seconds):
        """Waits until `pattern` is found in what came since the last successful wait."""
        deadline = time.monotonic() + seconds
        while True:
            match = re.search(pattern, self.screen.plain[self.seen :], re.S)
            if match is not None:
                self.seen += match.end()
                return True
            left = deadline - time.monotonic()
            if left <= 0 or (self.code is not None):
                return False
            self.read(min(left, 0.5))

    def hang_up(self):
        os.close(self.descriptor)
        self.descriptor = -1

    def poll(self):
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if pid != 0:
            self.code = os.waitstatus_to_exitcode(status)
        else:
            time.sleep(0.02)

    def ended(self, seconds):
        deadline = time.monotonic() + seconds
        while self.code is None and time.monotonic() < deadline:
            if self.descriptor < 0:
                self.poll()
            else:
                self.read(0.2)
        return self.code


def main():
    terminal = Terminal()
    for line in sys.stdin:
        request = json.loads(line)
        what = request["do"]
        result = None
        if what == "start":
            terminal.start(request)
        elif what == "send":
            os.write(terminal.descriptor, request["text"].encode())
        elif what == "resize":
            terminal.resize(request["columns"])
        elif what == "wait":
            result = terminal.wait(request["pattern"], request["seconds"])
        elif what == "hang_up":
            terminal.hang_up()
        elif what == "ended":
            result = terminal.ended(request["seconds"])
        elif what == "signal":
            os.kill(terminal.pid, getattr(signal, request["name"]))
        elif what == "settle":
            while terminal.read(request["seconds"]):
                pass
        elif what == "raw":
            result = terminal.raw
        answer = {"result": result, "screen": terminal.screen.text()}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
    if terminal.pid and terminal.code is None:
        os.kill(terminal.pid, signal.SIGKILL)


main()
