#ifndef HOLDFAST_CQRENCODE_SHIM_H
#define HOLDFAST_CQRENCODE_SHIM_H

#include <qrencode.h>

#endif
