# The verifier's guest, with the radio; it follows the host's commands.
. /scripts/bluetooth.sh
radio 1
lend
adapter 0 && agent 0
follow
