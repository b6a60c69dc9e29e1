"""A head whose disk was cloned: two hosts with one configuration, one ledger, one identity file."""

from pathlib import Path

import pytest

from tests.integration.heads.test_head import a_cloud, acts, daemon_of, head_on, site_file
from tests.rigs.pools.controlling import await_running, disturbed, let_end, looks, of_class, sh, waiters
from tests.rigs.pools.realpool import tell, until
from updraft.clouds.base import TAG_IDENTITY
from updraft.clouds.local.images.image import Image
from updraft.clouds.local.process import LocalCloud
from updraft.demo.pool import RealPool

pytestmark = pytest.mark.long
USER = "user"


def clone_of(pool: RealPool, cloud: LocalCloud) -> RealPool:
    """A machine with a copy of the head's disk, taken while it ran; cloud-init finds that it is another."""
    client = cloud.client()
    made = client.make_image(pool.head, "clone", {})
    ready = lambda: any(one["id"] == made and one["state"] == "ready" for one in client.images())  # noqa: E731
    until(ready, 60, "the copy of the head's disk is made")
    [machine] = client.run(
        key="its-clone",
        count=1,
        image="clone",
        flavor="medium",
        zone=cloud.config.zones[0].name,
        market="on-demand",
        tags={"Name": "clone"},
        role="controller",
        user_data=b"#cloud-config\n{}\n",
    )
    clone = RealPool(cloud, str(machine["id"]), pool.image)
    until(lambda: daemon_of(clone).get("alive"), 90, "the clone's controller runs")
    return clone


def test_a_cloned_head_only_reports_until_it_takes_over(image: Image, tmp_path: Path) -> None:
    with a_cloud(image, tmp_path / "cloud") as cloud:
        pool = head_on(cloud, image, site_file(tmp_path, cloud, image), "controller", "--raw")
        clone = None
        try:
            until(lambda: acts(pool), 60, "the controller acts")
            # Before there is a job: a schedd with a copy of the queue reconnects to the jobs in it.
            clone = clone_of(pool, cloud)
            cluster = pool.submit(waiters(1, "word", user=USER), user=USER)
            await_running(pool, cluster)
            [worker] = of_class(pool, "worker", "running")
            assert worker["tags"][TAG_IDENTITY] in sh(pool, "cat /var/lib/updraft/identity")
            looks(clone, 5)
            assert clone.show("status")["daemon"]["standing"]["code"] == "another-host"
            assert not acts(clone)
            assert acts(pool)
            refused = clone.updraft("adopt", "--take-over", "--yes")
            assert refused.returncode == 1
            assert "already runs" in refused.stderr
            let_end(pool, "word")
            until(lambda: not pool.queue(f"ClusterId == {cluster}"), 30, "the job is done")
            assert not disturbed(pool, cluster, USER)

            cloud.client().terminate([pool.head])
            sh(clone, "systemctl stop updraft")
            sh(clone, "updraft adopt --take-over --yes")
            sh(clone, "systemctl start updraft")
            until(lambda: acts(clone), 60, "the clone acts, now that it is the head")
        except BaseException:
            tell(pool)
            if clone is not None:
                tell(clone)
            raise
