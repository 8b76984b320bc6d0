import Glibc
import HoldfastCarrier

exit(Carrier.run())
