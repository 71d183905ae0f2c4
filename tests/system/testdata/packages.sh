#!/bin/bash
# Installs the .deb, the tarball and the wheel in a system that has neither Go nor gcc, uses each, and removes the .deb.
set -e
cd /tests
for name in go gcc; do if command -v "$name"; then exit 1; fi; done
files() { find /etc /opt /usr /var/lib -xdev ! -path '/var/lib/dpkg/*' ! -name ld.so.cache | sort; }

mandb -q >/dev/null 2>&1 || true
files >before
SECONDS=0
dpkg -i packages/*.deb
tierallocctl verify -- sh -c 'ls /; cat /etc/passwd | sort'
echo "from dpkg -i to a preload that is verified: $SECONDS s"
LD_PRELOAD=libtieralloc.so.1 TA_STATS_FILE=/tests/deb.json ls / >/dev/null
grep -q '"program"' deb.json
dpkg --verify tieralloc
for page in /usr/share/man/man[137]/t[ai]*.gz; do
	[ ! -f "$page" ] || ! dpkg -S "$page" | grep -q ^tieralloc: || man --warnings -l "$page" 2>&1 >/dev/null | tee -a man.err
done
[ ! -s man.err ]
dpkg -P tieralloc
files >after
diff before after >left || true

mkdir /opt/it
tar -xzf packages/*.tar.gz -C /opt/it --strip-components=1
/opt/it/bin/tierallocctl verify -- sh -c 'ls /'

python3 -m venv /opt/venv
/opt/venv/bin/pip install --no-index packages/*.whl
/opt/venv/bin/python -m tieralloc verify -- /opt/venv/bin/python -c 'print(1)'
/opt/venv/bin/python -m tieralloc run --quiet -- /opt/venv/bin/python example.py >example.out
/opt/venv/bin/tierallocctl version
