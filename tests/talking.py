"""Conversations for tests, written as Claude Code writes them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

BEGAN = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


@dataclass
class Talk:
    """A session that can be said on, and written to where its client would keep it."""

    cwd: str
    session: str = "5c0e0000-0000-4000-8000-000000000001"
    branch: str = "main"
    began: datetime = BEGAN
    records: list[dict[str, Any]] = field(default_factory=list)

    def ask(self, text: str, **more: Any) -> Talk:
        return self._say("user", {"role": "user", "content": text}, **more)

    def say(self, text: str) -> Talk:
        return self._say("assistant", {"content": [{"type": "text", "text": text}]})

    def run(self, command: str, output: str = "", *, ok: bool = True) -> Talk:
        return self.use("Bash", {"command": command}, output, ok=ok)

    def edit(self, path: str) -> Talk:
        return self.use("Edit", {"file_path": path, "old_string": "a", "new_string": "b"}, "done")

    def use(self, tool: str, arguments: Mapping[str, Any], output: str = "", *, ok: bool = True) -> Talk:
        call = f"toolu_{len(self.records)}"
        self._say("assistant", {"content": [{"type": "tool_use", "id": call, "name": tool, "input": dict(arguments)}]})
        result = {"type": "tool_result", "tool_use_id": call, "content": output, "is_error": not ok}
        return self._say("user", {"role": "user", "content": [result]})

    def lines(self) -> list[str]:
        return [json.dumps(record) for record in self.records]

    def path(self, home: Path) -> Path:
        return home / ".claude" / "projects" / "-enc" / f"{self.session}.jsonl"

    def write(self, home: Path) -> Path:
        """The whole session, with the last line ended."""
        path = self.path(home)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(self.lines()) + "\n", encoding="utf-8")
        return path

    def _say(self, type_: str, message: dict[str, Any], **more: Any) -> Talk:
        number = len(self.records)
        uid = f"{self.session[-4:]}-{number:012x}"
        if type_ == "assistant":
            message = {"id": f"msg_{number}", "role": "assistant", "model": "claude-test-1", **message}
        self.records.append(
            {
                "type": type_,
                "uuid": uid,
                "parentUuid": self.records[-1]["uuid"] if self.records else None,
                "sessionId": self.session,
                "timestamp": (self.began + timedelta(minutes=number)).isoformat().replace("+00:00", "Z"),
                "cwd": self.cwd,
                "gitBranch": self.branch,
                "version": "2.1.38",
                "isSidechain": False,
                "message": message,
                **more,
            }
        )
        return self
