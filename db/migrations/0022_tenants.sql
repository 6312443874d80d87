-- Tenants share measurements and nothing else. A blob is there for a tenant that uploaded its bytes or for which it was
-- made. '' is the default tenant: the socket's owner, and tokens that name none.
ALTER TABLE tokens ADD COLUMN tenant TEXT NOT NULL DEFAULT '';
CREATE TABLE tenant_blobs (
  digest TEXT NOT NULL REFERENCES blobs (digest) ON DELETE CASCADE,
  tenant TEXT NOT NULL,
  PRIMARY KEY (digest, tenant)
) STRICT, WITHOUT ROWID;
INSERT INTO tenant_blobs SELECT digest, '' FROM blobs;
