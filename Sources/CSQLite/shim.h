#ifndef HOLDFAST_CSQLITE_SHIM_H
#define HOLDFAST_CSQLITE_SHIM_H

#include <sqlite3.h>

// Declarations that Swift cannot import: SQLITE_TRANSIENT is a cast, and sqlite3_db_config is variadic.

static inline int holdfast_bind_blob(sqlite3_stmt *statement, int index, const void *bytes, sqlite3_uint64 byte_count) {
  return sqlite3_bind_blob64(statement, index, bytes, byte_count, SQLITE_TRANSIENT);
}

static inline int holdfast_bind_text(sqlite3_stmt *statement, int index, const char *bytes, sqlite3_uint64 byte_count) {
  return sqlite3_bind_text64(statement, index, bytes, byte_count, SQLITE_TRANSIENT, SQLITE_UTF8);
}

static inline int holdfast_set_switch(sqlite3 *database, int option, int value) {
  return sqlite3_db_config(database, option, value, (int *)0);
}

#endif
