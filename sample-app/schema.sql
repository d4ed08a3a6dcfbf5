-- What the sample needs, made once: 500 products and 150,000 order lines. Running it again changes nothing.
create schema if not exists catalog_sample;

create table if not exists catalog_sample.products (
  id integer primary key,
  name text not null,
  price_in_cents integer not null check (price_in_cents >= 0)
);

-- There is no index on product_id, so whatever asks about one product reads all of it. That is what makes the query slow.
create table if not exists catalog_sample.order_lines (
  product_id integer not null,
  customer_id integer not null,
  quantity integer not null,
  ordered_at timestamptz not null
);

create table if not exists catalog_sample.reports (
  day date primary key,
  -- The token of the lock under which the report was written; a lower one may not replace a higher one.
  fencing_token bigint not null,
  written_by text not null,
  best_sellers jsonb not null
);

-- Counts how often the slow query ran: a sequence is never rolled back, whoever asks.
create sequence if not exists catalog_sample.slow_queries;

insert into catalog_sample.products
select id, 'Product ' || id, 500 + id * 10
from generate_series(1, 500) id
where not exists (select from catalog_sample.products);

insert into catalog_sample.order_lines
select 1 + line % 500, (line::bigint * 7919) % 20011, 1 + line % 5, now() - line * interval '1 minute'
from generate_series(1, 150000) line
where not exists (select from catalog_sample.order_lines);

analyze catalog_sample.order_lines;
