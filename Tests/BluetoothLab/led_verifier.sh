# The verifier's host, with the radio; it does what the host says.
. /scripts/bluetooth.sh
radio 1
lend
adapter 0 && agent 0
follow
