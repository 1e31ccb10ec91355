-- Run once by psql, when the container's database is made: the worker's role (not named repave: the ledger's schema would come first in its
-- search path), and the example's tables with their data.
-- For a warehouse of your own keep the role alone.

\getenv password REPAVE_DATABASE_PASSWORD
CREATE ROLE repave_worker LOGIN PASSWORD :'password';

CREATE TABLE sales (
  sold_on     date          NOT NULL,
  customer_id int           NOT NULL,
  quantity    int           NOT NULL,
  amount      numeric(12,2) NOT NULL
);
COPY sales (customer_id, sold_on, quantity, amount)
FROM PROGRAM 'tr -d "\r" < /examples/cdnow/CDNOW_master.txt | tail -n +2 | sed -e "s/^ *//" -e "s/ *$//" -e "s/  */,/g"' (FORMAT csv);
CREATE INDEX sales_sold_on ON sales (sold_on);
GRANT SELECT ON sales TO repave_worker;

-- What the pipelines fill; `repave migrate --role repave_worker --apply-grants` lets the worker write them.
CREATE TABLE sales_summary (
  sale_date date          PRIMARY KEY,
  orders    bigint        NOT NULL,
  units     bigint        NOT NULL,
  revenue   numeric(14,2) NOT NULL
);
CREATE TABLE exchange_rates (
  day      date    NOT NULL,
  currency text    NOT NULL,
  rate     numeric NOT NULL,
  PRIMARY KEY (day, currency)
);
