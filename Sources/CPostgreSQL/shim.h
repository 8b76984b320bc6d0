#ifndef HOLDFAST_CPOSTGRESQL_SHIM_H
#define HOLDFAST_CPOSTGRESQL_SHIM_H

#include <libpq-fe.h>

// Macros of characters, as the type that PQresultErrorField takes.
static const int holdfast_severity = PG_DIAG_SEVERITY_NONLOCALIZED;
static const int holdfast_sql_state = PG_DIAG_SQLSTATE;

#endif
