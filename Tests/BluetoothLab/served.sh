# Functions for scripts in which one adapter of the host belongs to a device and the others to provers.
. /scripts/bluetooth.sh
export XDG_DATA_HOME=/tmp/data
PSM=4097 CHANNEL=5 LE_PSM=128

# together COUNT: creates this number of adapters on one radio, each with an agent; hci0 belongs to the device.
together() {
  radio "$1"
  for index in $(seq 0 $(($1 - 1))); do adapter "$index" && agent "$index"; done
  device=$(address 0)
}

# endpoint KIND INDEX: prints the device's endpoint for the adapter's prover.
endpoint() { echo "$(place "$1"),hci=hci$2"; }

place() {
  case $1 in
  rfcomm) echo "rfcomm:$device,channel=$(port rfcomm)" ;;
  *) echo "$1:$device,psm=$(port "$1")" ;;
  esac
}

port() {
  case $1 in
  l2cap) echo "$PSM" ;;
  rfcomm) echo "$CHANNEL" ;;
  le | link) echo "$LE_PSM" ;;
  esac
}

# serve_all [ARGUMENT...]: starts the device at every transport, and waits until it listens; its log, with every answer, is
# /tmp/device.log.
serve_all() {
  : >/tmp/device.log
  holdfast device serve --verbose --dir /tmp/lock --listen "$(place l2cap)" --listen "$(place rfcomm)" --listen "$(place le)" \
    --listen unix:/tmp/lock.sock "$@" >>/tmp/device.log 2>&1 &
  server=$!
  patiently serving /tmp/device.log
}

# enrolled STATE...: enrols more provers, each with a separate token and separate request numbers.
enrolled() {
  for state in "$@"; do
    holdfast enroll --device /tmp/lock.json --service /tmp/service --state "/tmp/$state" >/tmp/met || report failed "$state: $(cat /tmp/met)"
  done
}

uptime_seconds() { read -r uptime rest </proc/uptime && echo "$uptime"; }

# trying NAME COMMAND...: reports the exit status, the seconds and the whole output of the command, on one line.
trying() {
  name=$1 begin=$(uptime_seconds)
  shift
  "$@" >"/tmp/$name.said" 2>&1
  status=$?
  report "$name" "$status $begin $(uptime_seconds) $(grep -v 'the default key' "/tmp/$name.said" | tr -s '\r\n' ' ')"
}

# For how many seconds a prover waits.
patience=100

# proves NAME STATE KIND INDEX [OPTION...]: runs a round of the adapter's prover.
proves() {
  name=$1 state=$2 kind=$3 index=$4
  shift 4
  trying "$name" timeout 120 holdfast prove --state "/tmp/$state" --connect "$(endpoint "$kind" "$index")" --command status \
    --timeout "$patience" "$@"
}

# foreign KIND INDEX STEP...: becomes a client at the adapter that shares no code with Holdfast. Use it in a separate shell.
foreign() {
  kind=$1 index=$2
  shift 2
  exec timeout 900 foreign_peer "$kind" "$(address "$index")" "$device" "$(port "$kind")" "$@"
}

# answers PATTERN: counts the device's answers that match.
answers() { grep -cE "connection [0-9]+: $1([, ]|\$)" /tmp/device.log; }

# answered STATUS COUNT: whether the device has given COUNT such answers since its start.
answered() { [ "$(answers "$1")" -ge "$2" ]; }
