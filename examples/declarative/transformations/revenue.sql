CREATE MATERIALIZED VIEW revenue AS
SELECT shop, count(*) AS orders, sum(price) AS total
FROM orders
GROUP BY shop;
