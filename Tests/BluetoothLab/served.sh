# What a script begins with where one adapter of the host is a device's and the others are provers'.
. /scripts/bluetooth.sh
export XDG_DATA_HOME=/tmp/data
PSM=4097 CHANNEL=5 LE_PSM=128

# together COUNT: so many adapters on one radio, with an agent each; hci0 is the device's.
together() {
  radio "$1"
  for index in $(seq 0 $(($1 - 1))); do adapter "$index" && agent "$index"; done
  device=$(address 0)
}

# endpoint KIND INDEX: where the device is, for the adapter's prover.
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

# serve_all [ARGUMENT...]: begins to serve over every transport, and waits until the device listens; what it says, each answer among it,
# is /tmp/device.log.
serve_all() {
  : >/tmp/device.log
  holdfast device serve --verbose --dir /tmp/lock --listen "$(place l2cap)" --listen "$(place rfcomm)" --listen "$(place le)" \
    --listen unix:/tmp/lock.sock "$@" >>/tmp/device.log 2>&1 &
  server=$!
  patiently serving /tmp/device.log
}

# enrolled STATE...: more provers, each with a token and request numbers of its own.
enrolled() {
  for state in "$@"; do
    holdfast enroll --device /tmp/lock.json --service /tmp/service --state "/tmp/$state" >/tmp/met || report failed "$state: $(cat /tmp/met)"
  done
}

uptime_seconds() { cut -d ' ' -f 1 /proc/uptime; }

# trying NAME COMMAND...: reports the exit status, after how many seconds, and all that the command said, on one line.
trying() {
  name=$1 begin=$(uptime_seconds)
  shift
  "$@" >"/tmp/$name.said" 2>&1
  status=$?
  report "$name" "$status $begin $(uptime_seconds) $(grep -v 'development measurement' "/tmp/$name.said" | tr -s '\r\n' ' ')"
}

# proves NAME STATE KIND INDEX [OPTION...]: a round by the adapter's prover.
proves() {
  name=$1 state=$2 kind=$3 index=$4
  shift 4
  trying "$name" timeout 40 holdfast prove --state "/tmp/$state" --connect "$(endpoint "$kind" "$index")" --command status "$@"
}

# foreign KIND INDEX STEP...: becomes a client at the adapter that shares nothing with Holdfast. Use it in a shell of its own.
foreign() {
  kind=$1 index=$2
  shift 2
  exec timeout 100 foreign_peer "$kind" "$(address "$index")" "$device" "$(port "$kind")" "$@"
}

# answers PATTERN: how many of the device's answers are so.
answers() { grep -cE "connection [0-9]+: $1([, ]|\$)" /tmp/device.log; }

# answered STATUS COUNT: whether the device has given so many such answers since it began.
answered() { [ "$(answers "$1")" -ge "$2" ]; }
