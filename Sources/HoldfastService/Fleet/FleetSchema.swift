import HoldfastDatabase

/// The tables of a service, for both databases. Times are Unix seconds.
///
/// A script takes the schema from its index to the next number. Scripts are only ever appended.
package enum FleetSchema {
  /// The bytes "HFfl", which mark an SQLite file.
  package static let applicationID: Int32 = 0x4846_666c

  package static let scripts: [StaticString] = [
    """
    CREATE TABLE settings (name TEXT PRIMARY KEY, value BLOB NOT NULL, revision INTEGER NOT NULL);
    CREATE TABLE keys (
      id BLOB PRIMARY KEY, purpose TEXT NOT NULL, sealed BLOB NOT NULL, added INTEGER NOT NULL,
      active INTEGER NOT NULL, retired INTEGER);
    CREATE TABLE releases (id BLOB PRIMARY KEY, sealed BLOB NOT NULL, added INTEGER NOT NULL);
    CREATE TABLE images (
      digest BLOB PRIMARY KEY, subject TEXT NOT NULL, major INTEGER NOT NULL, minor INTEGER NOT NULL,
      patch INTEGER NOT NULL, release BLOB NOT NULL REFERENCES releases (id), added INTEGER NOT NULL, withdrawn INTEGER);
    CREATE TABLE devices (
      id BLOB PRIMARY KEY, point BLOB NOT NULL, label TEXT, added INTEGER NOT NULL, blocked INTEGER,
      generation INTEGER NOT NULL);
    CREATE TABLE provers (
      id BLOB PRIMARY KEY, first_seen INTEGER NOT NULL, last_seen INTEGER NOT NULL, revoked INTEGER, reason TEXT);
    CREATE TABLE users (name TEXT PRIMARY KEY, added INTEGER NOT NULL, revoked INTEGER, reason TEXT);
    CREATE TABLE appraisals (
      salt BLOB PRIMARY KEY, evidence BLOB NOT NULL, device BLOB NOT NULL, first_seen INTEGER NOT NULL);
    CREATE INDEX appraisals_by_time ON appraisals (first_seen);
    CREATE TABLE invitations (
      id BLOB PRIMARY KEY, digest BLOB NOT NULL UNIQUE, device BLOB NOT NULL REFERENCES devices (id), username TEXT,
      commands TEXT, maximum_uses INTEGER, created INTEGER NOT NULL, creator TEXT NOT NULL, expires INTEGER NOT NULL,
      revoked INTEGER, used INTEGER, prover BLOB, baseline BLOB, token BLOB);
    CREATE TABLE requests (
      id BLOB PRIMARY KEY, baseline BLOB NOT NULL UNIQUE, device BLOB NOT NULL REFERENCES devices (id),
      prover BLOB NOT NULL, code TEXT NOT NULL, subject TEXT NOT NULL, version TEXT NOT NULL, username TEXT,
      commands TEXT, created INTEGER NOT NULL, status TEXT NOT NULL, decided INTEGER, decider TEXT, reason TEXT,
      maximum_uses INTEGER, token BLOB);
    CREATE INDEX requests_by_status ON requests (status, created);
    CREATE TABLE tokens (
      id BLOB PRIMARY KEY, baseline BLOB NOT NULL UNIQUE, device BLOB NOT NULL, prover BLOB NOT NULL,
      subject TEXT NOT NULL, version TEXT NOT NULL, username TEXT, commands TEXT, maximum_uses INTEGER,
      issued INTEGER NOT NULL, expires INTEGER NOT NULL, generation INTEGER NOT NULL, signer BLOB NOT NULL,
      format TEXT NOT NULL, bytes BLOB NOT NULL, claims TEXT NOT NULL, revoked INTEGER, reason TEXT);
    CREATE INDEX tokens_by_device ON tokens (device, id);
    CREATE INDEX tokens_by_prover ON tokens (prover, id);
    CREATE INDEX tokens_by_user ON tokens (username, id);
    CREATE INDEX tokens_by_time ON tokens (issued);
    CREATE TABLE refusals (
      number IDENTITY, moment INTEGER NOT NULL, step TEXT NOT NULL, reasons TEXT NOT NULL, code TEXT, device BLOB,
      prover BLOB, image BLOB);
    CREATE INDEX refusals_by_code ON refusals (code);
    CREATE TABLE counters (
      hour INTEGER NOT NULL, name TEXT NOT NULL, shard INTEGER NOT NULL, count INTEGER NOT NULL,
      PRIMARY KEY (hour, name, shard));
    CREATE TABLE response_codes (
      code TEXT PRIMARY KEY, prover BLOB NOT NULL, properties TEXT NOT NULL, first_seen INTEGER NOT NULL);
    CREATE TABLE operators (
      name TEXT PRIMARY KEY, digest BLOB NOT NULL UNIQUE, scopes TEXT NOT NULL, added INTEGER NOT NULL,
      expires INTEGER, revoked INTEGER);
    CREATE TABLE changes (
      number IDENTITY, moment INTEGER NOT NULL, actor TEXT NOT NULL, action TEXT NOT NULL, object TEXT NOT NULL,
      detail TEXT NOT NULL);
    APPEND ONLY changes;
    """,
    """
    CREATE TABLE audit_chains (
      device BLOB PRIMARY KEY REFERENCES devices (id), count INTEGER NOT NULL, received INTEGER NOT NULL);
    CREATE TABLE audits (
      number IDENTITY, device BLOB NOT NULL REFERENCES devices (id), sequence INTEGER NOT NULL, moment INTEGER NOT NULL,
      event TEXT NOT NULL, username TEXT NOT NULL, details TEXT NOT NULL, entry BLOB NOT NULL, head BLOB NOT NULL,
      UNIQUE (device, sequence));
    CREATE INDEX audits_by_device ON audits (device, number);
    APPEND ONLY audits;
    """,
    """
    CREATE TABLE sessions (
      digest BLOB PRIMARY KEY, operator TEXT NOT NULL REFERENCES operators (name), expires INTEGER NOT NULL);
    CREATE INDEX sessions_by_time ON sessions (expires);
    CREATE INDEX devices_by_label ON devices (label);
    """,
    """
    CREATE TABLE domains (
      name TEXT PRIMARY KEY, audience TEXT NOT NULL, algorithm TEXT NOT NULL, lifetime INTEGER NOT NULL,
      protected INTEGER NOT NULL, measurement INTEGER NOT NULL, added INTEGER NOT NULL);
    CREATE TABLE pins (id TEXT PRIMARY KEY, domain TEXT NOT NULL, pin TEXT NOT NULL, added INTEGER NOT NULL);
    CREATE TABLE strings (name TEXT PRIMARY KEY, sealed BLOB NOT NULL, changed INTEGER NOT NULL);
    CREATE TABLE code_statements (
      code TEXT PRIMARY KEY, app_properties TEXT NOT NULL, system_id TEXT, system_version TEXT, user_property TEXT,
      seen INTEGER NOT NULL);
    """,
    """
    CREATE TABLE domain_secrets (name TEXT PRIMARY KEY, epoch INTEGER NOT NULL, changed INTEGER NOT NULL);
    CREATE TABLE image_makers (
      digest BLOB PRIMARY KEY REFERENCES images (digest), maker TEXT NOT NULL, maker_key BLOB NOT NULL);
    """,
    """
    CREATE TABLE image_trees (digest BLOB PRIMARY KEY REFERENCES images (digest), tree BLOB NOT NULL UNIQUE);
    """,
    """
    CREATE TABLE device_groups (
      device BLOB PRIMARY KEY REFERENCES devices (id), names TEXT NOT NULL, capacity INTEGER NOT NULL);
    CREATE TABLE group_devices (
      device BLOB NOT NULL REFERENCES devices (id), position INTEGER NOT NULL, audience BLOB NOT NULL,
      PRIMARY KEY (device, position));
    CREATE INDEX group_devices_by_audience ON group_devices (audience, position, device);
    CREATE INDEX tokens_by_revocation ON tokens (device, revoked);
    CREATE TABLE bulletin_audiences (audience BLOB PRIMARY KEY, signed INTEGER NOT NULL);
    CREATE TABLE bulletins (
      audience BLOB NOT NULL, number INTEGER NOT NULL, issuer BLOB NOT NULL, predecessor INTEGER NOT NULL,
      issued INTEGER NOT NULL, entries INTEGER NOT NULL, generation INTEGER, bytes BLOB NOT NULL,
      PRIMARY KEY (audience, number), UNIQUE (audience, issuer, predecessor));
    CREATE TABLE bulletin_entries (
      audience BLOB NOT NULL, token BLOB NOT NULL, issuer BLOB NOT NULL, number INTEGER NOT NULL, until INTEGER NOT NULL,
      PRIMARY KEY (audience, token));
    CREATE INDEX bulletins_by_number ON bulletins (number, audience);
    CREATE INDEX bulletin_entries_by_token ON bulletin_entries (token);
    CREATE INDEX bulletin_entries_by_number ON bulletin_entries (audience, issuer, number);
    CREATE INDEX audits_by_event ON audits (device, event, number);
    """,
    """
    CREATE TABLE audit_heads (
      device BLOB NOT NULL REFERENCES devices (id), sequence INTEGER NOT NULL, head BLOB NOT NULL,
      PRIMARY KEY (device, sequence));
    CREATE TABLE audit_logs (
      device BLOB PRIMARY KEY REFERENCES devices (id), through INTEGER NOT NULL, cut INTEGER NOT NULL,
      count INTEGER NOT NULL, acknowledged INTEGER NOT NULL, forked INTEGER, taken INTEGER NOT NULL, known INTEGER NOT NULL,
      refused INTEGER NOT NULL, received INTEGER);
    CREATE TABLE first_revocations (
      token BLOB NOT NULL, audience BLOB NOT NULL, number INTEGER NOT NULL, PRIMARY KEY (token, audience));
    CREATE INDEX changes_by_object ON changes (object, number);
    CREATE INDEX revoked_tokens ON tokens (id) WHERE revoked IS NOT NULL;
    """,
    """
    CREATE TABLE minimum_versions (
      audience BLOB NOT NULL, subject TEXT NOT NULL, major INTEGER NOT NULL, minor INTEGER NOT NULL, patch INTEGER NOT NULL,
      raised INTEGER NOT NULL, PRIMARY KEY (audience, subject));
    CREATE TABLE user_orders (
      device BLOB NOT NULL REFERENCES devices (id), username TEXT NOT NULL, until INTEGER, ordered INTEGER NOT NULL,
      PRIMARY KEY (device, username));
    CREATE TABLE bulletin_versions (
      audience BLOB NOT NULL, issuer BLOB NOT NULL, number INTEGER NOT NULL, subject TEXT NOT NULL, major INTEGER NOT NULL,
      minor INTEGER NOT NULL, patch INTEGER NOT NULL, PRIMARY KEY (audience, issuer, number, subject));
    CREATE TABLE bulletin_users (
      audience BLOB NOT NULL, issuer BLOB NOT NULL, number INTEGER NOT NULL, username TEXT NOT NULL, until INTEGER,
      ordered INTEGER NOT NULL, PRIMARY KEY (audience, issuer, number, username));
    """,
    """
    CREATE TABLE key_orders (
      audience BLOB NOT NULL, kid BLOB NOT NULL, introducer BLOB, point BLOB, begins INTEGER, until INTEGER,
      introduced INTEGER, ended INTEGER, PRIMARY KEY (audience, kid));
    CREATE TABLE bulletin_keys (
      audience BLOB NOT NULL, issuer BLOB NOT NULL, number INTEGER NOT NULL, kid BLOB NOT NULL, point BLOB, begins INTEGER,
      until INTEGER NOT NULL, ends INTEGER NOT NULL, PRIMARY KEY (audience, issuer, number, kid));
    """,
  ]
}
