-- repave
-- target: sales_summary
-- partition: { column: sale_date, by: day }
-- start: 1997-01-01
-- checks: [{ rows: { min: 1 } }, { unique: [sale_date] }]
SELECT sold_on AS sale_date, count(*) AS orders, sum(quantity) AS units, sum(amount) AS revenue
FROM   sales
WHERE  sold_on >= :date AND sold_on < :end_date
GROUP  BY sold_on
