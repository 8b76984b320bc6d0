/// A placeholder until the server follows.
package enum PostgreSQLServer {}
