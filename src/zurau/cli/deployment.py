"""Files that run a cluster on machines: systemd units, a compose file with its Dockerfile, a script that uses ssh."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

EXECUTABLE = 0o755

UNIT = """\
# One broker of a Zurau cluster. Settings are in /etc/zurau.env, one ZURAU_NAME=VALUE a line;
# `zurau serve --help` lists them. ZURAU_JOIN names all brokers, the same list on every machine.
[Unit]
Description=Zurau broker
After=network-online.target
Wants=network-online.target

[Service]
Type=exec
User=zurau
Group=zurau
EnvironmentFile=/etc/zurau.env
ExecStart=/opt/zurau/bin/zurau serve
# A stop hands leadership over and flushes everything first.
KillSignal=SIGTERM
TimeoutStopSec=120
Restart=on-failure
RestartSec=2
LimitNOFILE=1048576
StateDirectory=zurau
NoNewPrivileges=true
ProtectSystem=strict
ProtectHome=true
PrivateTmp=true

[Install]
WantedBy=multi-user.target
"""

ENVIRONMENT = """\
ZURAU_DIR=/var/lib/zurau
ZURAU_KAFKA=0.0.0.0:9092
# HOST or HOST:PORT of every broker, this one too; the same everywhere. Port 9192 is the usual one.
ZURAU_JOIN={join}
"""

DOCKERFILE = """\
FROM python:3.12-slim
# What pip installs: a version (zurau==1.2.3), or a wheel that was copied here.
ARG ZURAU="zurau[fast]"
RUN pip install --no-cache-dir "$ZURAU" \\
 && useradd --system --home-dir /var/lib/zurau --create-home zurau
USER zurau
VOLUME /var/lib/zurau
EXPOSE 9092 9192
STOPSIGNAL SIGTERM
ENTRYPOINT ["zurau"]
CMD ["serve"]
"""

SERVICE = """\
  broker-{broker}:
    build: .
    image: zurau
    hostname: broker-{broker}
    restart: unless-stopped
    stop_grace_period: 2m
    environment:
      ZURAU_DIR: /var/lib/zurau/data
      ZURAU_KAFKA: 0.0.0.0:9092
      # Clients on this machine find it here. For clients elsewhere, name a host that they know.
      ZURAU_ADVERTISE: localhost:{port}
      ZURAU_JOIN: {join}
    ports:
      - "{port}:9092"
    volumes:
      - broker-{broker}:/var/lib/zurau
"""

DEPLOY = """\
#!/usr/bin/env bash
# Installs Zurau on machines, over ssh, and starts it: ./deploy.sh host1 host2 host3
#
# The machines need Python 3.11 or newer with venv, systemd, and a user who may use sudo. Run it again to upgrade: one
# machine after the other, each waited for.
#
#   ZURAU=zurau==1.2.3 ./deploy.sh ...    what pip installs
#   DRY_RUN=1 ./deploy.sh ...             say what would be done, and do nothing
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
package=${ZURAU:-zurau[fast]}
there=/tmp/zurau-deploy

if [ "$#" -eq 0 ]; then
  echo "usage: $0 HOST [HOST ...]" >&2
  exit 2
fi
join=$(IFS=,; echo "$*")

run() {
  if [ -n "${DRY_RUN:-}" ]; then
    printf 'would run:'
    printf ' %q' "$@"
    printf '\\n'
  else
    "$@"
  fi
}

for host in "$@"; do
  echo "== $host"
  run ssh -o BatchMode=yes "$host" mkdir -p "$there"
  run scp -q "$here/install.sh" "$here/zurau.service" "$here/zurau.env" "$host:$there/"
  run ssh -o BatchMode=yes "$host" sudo bash "$there/install.sh" "'$package'" "'$join'"
done
printf 'clients use: %s\\n' "$(printf '%s:9092,' "$@" | sed 's/,$//')"
"""

INSTALL = """\
#!/usr/bin/env bash
# Runs on each machine, as root: install.sh PACKAGE JOIN. What is in /etc/zurau.env already stays.
set -euo pipefail

package=$1
join=$2
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

if ! id zurau >/dev/null 2>&1; then
  useradd --system --home-dir /var/lib/zurau --shell /usr/sbin/nologin zurau
fi
if [ ! -x /opt/zurau/bin/pip ]; then
  python3 -m venv /opt/zurau
fi
/opt/zurau/bin/pip install --quiet --upgrade "$package"
install -m 644 "$here/zurau.service" /etc/systemd/system/zurau.service
if [ ! -f /etc/zurau.env ]; then
  sed "s/^ZURAU_JOIN=.*/ZURAU_JOIN=$join/" "$here/zurau.env" >/etc/zurau.env
fi

was_running=no
if systemctl is-active --quiet zurau; then
  was_running=yes
fi
systemctl daemon-reload
systemctl enable --quiet zurau
systemctl restart zurau

# The first time, none of them is ready before all are there.
if [ "$was_running" = yes ]; then
  for _ in $(seq 120); do
    if /opt/zurau/bin/zurau topic list --bootstrap localhost:9092 >/dev/null 2>&1; then
      exit 0
    fi
    sleep 1
  done
  echo "the broker is not ready after two minutes: journalctl --unit zurau" >&2
  exit 1
fi
"""


def write_deployment(directory: Path, brokers: int) -> list[Path]:
    """Write all of them; returns what was written."""
    directory.mkdir(parents=True, exist_ok=True)
    written = []
    for name, content in _files(brokers):
        path = directory / name
        path.write_text(content)
        if name.endswith(".sh"):
            path.chmod(EXECUTABLE)
        written.append(path)
    return written


def _files(brokers: int) -> Iterator[tuple[str, str]]:
    numbers = range(1, brokers + 1)
    hosts = ",".join(f"host{broker}" for broker in numbers)
    join = ",".join(f"broker-{broker}" for broker in numbers)
    services = "".join(SERVICE.format(broker=broker, port=9091 + broker, join=join) for broker in numbers)
    volumes = "".join(f"  broker-{broker}:\n" for broker in numbers)
    yield "zurau.service", UNIT
    yield "zurau.env", ENVIRONMENT.format(join=hosts)
    yield "Dockerfile", DOCKERFILE
    yield "compose.yaml", f"services:\n{services}\nvolumes:\n{volumes}"
    yield "deploy.sh", DEPLOY
    yield "install.sh", INSTALL
