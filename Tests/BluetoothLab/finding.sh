# A device and a prover on one host, each with an adapter, that know nothing of each other's numbers.
. /scripts/bluetooth.sh
export XDG_DATA_HOME=/tmp/data
meet holdfast /tmp/lock /tmp || report failed enrolment

reporting no-adapter holdfast doctor --json
radio 2
for index in 0 1; do patiently configured "$index"; done
btmgmt -i 0 power off >/dev/null
reporting down holdfast doctor rfcomm:00:AA:01:01:00:01 --json
for switch in /sys/class/bluetooth/hci0/rfkill*/soft; do
  echo 1 >"$switch"
  reporting blocked holdfast doctor --json
  echo 0 >"$switch"
done
for index in 0 1; do adapter "$index"; done
device=$(address 0)
reporting ready holdfast doctor --json
reporting nobody su -s /bin/sh nobody -c 'holdfast doctor --json'
reporting nobody-scans su -s /bin/sh nobody -c 'holdfast scan --seconds 1 --json'

# serve: serves all three transports, with numbers from the kernel where that is possible.
serve() {
  holdfast device serve --dir /tmp/lock --pair --listen l2cap:00:00:00:00:00:00,hci=hci0 --listen rfcomm:00:00:00:00:00:00,hci=hci0 \
    --listen le:00:00:00:00:00:00,psm=0x80,hci=hci0 >/tmp/served 2>&1 &
  server=$!
  patiently grep -q 'policy:' /tmp/served
  cat /tmp/served
}
prove() { reporting "$1" timeout 30 holdfast prove --pair --connect "$2,hci=hci1" --state /tmp/state --command unlock --json; }

# thrice NAME WANTED COMMAND...: runs and reports the command until its output contains WANTED, at most three times. bluetoothd has no
# agent here: if it is quicker than --pair, it refuses to pair. In addition, a scan was seen to miss an emulated advertiser.
thrice() {
  name=$1 wanted=$2
  shift 2
  for attempt in 1 2 3; do
    reporting "$name" "$@"
    grep -q "$wanted" /tmp/output && return
    # An incomplete pairing can hold a link for thirty seconds.
    within 40 unlinked 1
  done
}
proves_by_address() { thrice "$1" '"accepted":true' timeout 30 holdfast prove --pair --connect "$2,hci=hci1" --state /tmp/state --command unlock --json; }

serve
report warned "$(grep -c 'cannot be found by a scan: no SDP server' /tmp/served)"
prove unannounced "rfcomm:$device"
kill "$server" && wait "$server"

daemon
for index in 0 1; do adapter "$index"; done
serve
psm=$(sed -nE 's/.*listening at l2cap:.*psm=([^,]*),.*/\1/p' /tmp/served) channel=$(sed -nE 's/.*listening at rfcomm:.*channel=([^,]*),.*/\1/p' /tmp/served)
report numbers "$psm $channel $device"
proves_by_address announced-rfcomm "rfcomm:$device"
proves_by_address announced-l2cap "l2cap:$device"
reporting answers holdfast doctor "rfcomm:$device,channel=$channel,hci=hci1" --json
reporting no-channel holdfast doctor "rfcomm:$device,channel=29,hci=hci1" --json
listening stranger l2test -i hci0 -d -P 4133
reporting stranger holdfast doctor "l2cap:$device,psm=4133,hci=hci1" --timeout 2 --json
# The kernel searches for five seconds by Low Energy, then for five by classic Bluetooth.
thrice scanned '"le:.*"device_id"\|"device_id".*"le:' holdfast scan --adapter hci1 --seconds 11 --json
within 40 unlinked 1
proves_by_address low-energy "le:$device,psm=0x80"
kill "$server" && wait "$server"
prove gone "rfcomm:$device"
reporting scanned-gone holdfast scan --adapter hci1 --seconds 3 --json
