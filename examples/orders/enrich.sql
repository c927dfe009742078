-- Orders come in; each goes out to the topic `enriched` with what is known of its customer.
-- Run it with: goqueue pipeline run examples/orders/enrich.sql

-- A topic as a table: all that is in it now. ${goqueue.kafka} is where the brokers are.
CREATE TEMPORARY VIEW customer_messages USING goqueue
OPTIONS (`kafka.bootstrap.servers` '${goqueue.kafka}', subscribe 'customers');

CREATE TEMPORARY VIEW customer AS
SELECT DISTINCT fields.* FROM (
  SELECT from_json(CAST(value AS STRING), 'id STRING, name STRING, city STRING') AS fields FROM customer_messages
);

-- A topic as a stream: nobody has made a table `orders`, and there is such a topic.
CREATE TEMPORARY VIEW parsed AS
SELECT key, from_json(CAST(value AS STRING), 'id INT, customer STRING, amount DOUBLE') AS placed FROM orders;

INSERT INTO enriched
SELECT
  key,
  to_json(struct(placed.id, placed.amount, placed.amount >= 100 AS is_large, customer.name, customer.city)) AS value,
  CASE WHEN placed.amount >= 100 THEN 'high' ELSE 'normal' END AS priority
FROM parsed LEFT JOIN customer ON placed.customer = customer.id;
