#ifndef HOLDFAST_CPOSTGRESQL_SHIM_H
#define HOLDFAST_CPOSTGRESQL_SHIM_H

#include <libpq-fe.h>

#endif
