#ifndef HOLDFAST_CBLUEZ_SHIM_H
#define HOLDFAST_CBLUEZ_SHIM_H

#include <bluetooth/bluetooth.h>
#include <bluetooth/hci.h>
#include <bluetooth/hci_lib.h>
#include <bluetooth/l2cap.h>
#include <bluetooth/rfcomm.h>
#include <bluetooth/sdp.h>
#include <bluetooth/sdp_lib.h>

#endif
