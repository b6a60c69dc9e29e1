"""The images of the project in memory: records, files and members, as Glance has them."""

import time
from hashlib import md5, sha512
from typing import Any
from uuid import uuid4

from tests.rigs.clouds.osfront import Call, Reply

PROJECT = "c038e06f0f9d402f86079e7c74e435ac"


class FakeImages:
    told: dict[str, Any]
    files: dict[str, bytes]
    members: dict[str, dict[str, str]]

    def image(self, _call: Call, image: str) -> Reply:
        found = self._found(image)
        return Reply(404, "<html>404 Not Found</html>") if found is None else Reply(200, found)

    def image_make(self, call: Call) -> Reply:
        made = {
            "id": str(uuid4()),
            "status": "queued",
            "visibility": "shared",
            "owner": PROJECT,
            "size": None,
            "checksum": None,
            "created_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            **call.body,
        }
        self.told["images"]["images"].append(made)
        return Reply(201, made)

    def image_file(self, call: Call, image: str) -> Reply:
        found = self._found(image)
        if found is None:
            return Reply(404, "<html>404 Not Found</html>")
        if call.method == "GET":
            if image not in self.files:
                return Reply(204)
            return Reply(200, self.files[image], {"Content-Type": "application/octet-stream"})
        self._keep(found, call.body)
        return Reply(204)

    def image_delete(self, _call: Call, image: str) -> Reply:
        found = self._found(image)
        if found is None:
            return Reply(404, "<html>404 Not Found</html>")
        self.told["images"]["images"].remove(found)
        return Reply(204)

    def image_members(self, call: Call, image: str) -> Reply:
        members = self.members.setdefault(image, {})
        if call.method == "POST":
            if call.body["member"] in members:
                return Reply(409, "<html>409 Conflict</html>")
            members[call.body["member"]] = "pending"
        return Reply(200, {"members": [{"member_id": one, "status": how} for one, how in members.items()]})

    def image_member(self, call: Call, image: str, member: str) -> Reply:
        if member not in self.members.get(image, {}):
            return Reply(404, "<html>404 Not Found</html>")
        self.members[image][member] = call.body["status"]
        return Reply(200, {})

    def snapshot(self, server: str, asked: dict[str, Any]) -> str:
        about = {"name": asked["name"], "disk_format": "qcow2", **asked["metadata"]}
        made = self.image_make(Call("POST", "", body=about)).body
        self._keep(made, f"disk of {server}".encode())
        return str(made["id"])

    def _keep(self, image: dict[str, Any], data: bytes) -> None:
        self.files[image["id"]] = data
        image |= {
            "status": "active",
            "size": len(data),
            "checksum": md5(data, usedforsecurity=False).hexdigest(),
            "os_hash_algo": "sha512",
            "os_hash_value": sha512(data).hexdigest(),
        }

    def _found(self, image: str) -> dict[str, Any] | None:
        return next((one for one in self.told["images"]["images"] if one["id"] == image), None)
