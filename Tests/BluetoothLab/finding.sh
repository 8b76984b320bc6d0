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

# serves OPTIONS...: runs the device until `stops`.
serves() {
  holdfast device serve --dir /tmp/lock --pair "$@" >/tmp/served 2>&1 &
  server=$!
  patiently grep -q 'policy:' /tmp/served
  cat /tmp/served
}
stops() { kill "$server" && wait "$server"; }
# The kernel chooses PSM and channel.
classic='--listen l2cap:00:00:00:00:00:00,hci=hci0 --listen rfcomm:00:00:00:00:00:00,hci=hci0'
prove() { reporting "$1" timeout 120 holdfast prove --pair --connect "$2,hci=hci1" --state /tmp/state --command unlock --timeout 100 --json; }

# scans NAME: scans until a device has answered, at most three times: a scan was seen to miss an emulated device. The kernel searches for
# five seconds by Low Energy, then for five by classic Bluetooth.
scans() {
  for attempt in 1 2 3; do
    reporting "$1" holdfast scan --adapter hci1 --seconds 11 --json
    grep -q '"device_id"' /tmp/output && return
    alone 1
  done
}

serves $classic
report warned "$(grep -c 'cannot be found by a scan: no SDP server' /tmp/served)"
prove unannounced "rfcomm:$device"
stops

# adapter_beside_daemon INDEX: makes the adapter ready while bluetoothd begins, step by step: it makes changes, too, and needs time for these.
adapter_beside_daemon() {
  for setting in "power off" "le on" "connectable on" "bondable on" "ssp on" "io-cap 3" "power on" "discov yes"; do
    btmgmt -i "$1" $setting >/dev/null || report failed "hci$1: $setting"
  done
  patiently running "$1"
}
daemon
for index in 0 1; do adapter_beside_daemon "$index"; done
serves $classic
psm=$(sed -nE 's/.*listening at l2cap:.*psm=([^,]*),.*/\1/p' /tmp/served) channel=$(sed -nE 's/.*listening at rfcomm:.*channel=([^,]*),.*/\1/p' /tmp/served)
report numbers "$psm $channel $device"
prove announced-rfcomm "rfcomm:$device"
prove announced-l2cap "l2cap:$device"
reporting answers holdfast doctor "rfcomm:$device,channel=$channel,hci=hci1" --timeout 60 --json
reporting no-channel holdfast doctor "rfcomm:$device,channel=29,hci=hci1" --timeout 60 --json
listening stranger l2test -i hci0 -d -P 4133
reporting stranger holdfast doctor "l2cap:$device,psm=4133,hci=hci1" --timeout 8 --json
scans scanned
stops
alone 1
prove gone "rfcomm:$device"
reporting scanned-gone holdfast scan --adapter hci1 --seconds 3 --json

# Without bluetoothd, which has no agent here: it would refuse to pair where it is quicker than --pair.
kill -KILL "$bluetoothd"
for index in 0 1; do alone "$index"; done
for index in 0 1; do adapter "$index"; done
serves --listen le:00:00:00:00:00:00,psm=0x80,hci=hci0
prove low-energy "le:$device,psm=0x80"
alone 1
scans scanned-low-energy
stops
