CREATE TABLE orders (
  placed_at timestamptz NOT NULL,
  id        bigint PRIMARY KEY,
  customer  text,
  amount    numeric(12, 2) NOT NULL,
  lines     jsonb NOT NULL
);
CREATE INDEX ON orders (placed_at);
