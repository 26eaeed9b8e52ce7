-- h0
select count(*) from hits;
-- h1
select count(*) from hits where i16_0 <> 0;
-- h2
select sum(i32_0), count(*), avg(i32_1) from hits;
-- h3
select avg(i64_0) from hits;
-- h4
select count(distinct i64_1) from hits;
-- h5
select count(distinct search_phrase) from hits;
-- h6
select min(event_date), max(event_date) from hits;
-- h7
select i16_4, count(*) from hits where i16_4 <> 0 group by i16_4 order by count(*) desc, i16_4 limit 20;
-- h8
select i32_1, count(distinct i64_1) as u from hits group by i32_1 order by u desc, i32_1 limit 10;
-- h9
select i32_1, sum(i16_5), count(*) as c, avg(i16_4), count(distinct i64_1) from hits group by i32_1 order by c desc, i32_1 limit 10;
-- h10
select mobile_model, count(distinct i64_1) as u from hits where mobile_model <> '' group by mobile_model order by u desc, mobile_model limit 10;
-- h12
select search_phrase, count(*) as c from hits where search_phrase <> '' group by search_phrase order by c desc, search_phrase limit 10;
-- h14
select i16_5, search_phrase, count(*) as c from hits where search_phrase <> '' group by i16_5, search_phrase order by c desc, i16_5, search_phrase limit 10;
-- h15
select i64_1, count(*) from hits group by i64_1 order by count(*) desc, i64_1 limit 10;
-- h16
select i64_1, search_phrase, count(*) from hits group by i64_1, search_phrase order by count(*) desc, i64_1, search_phrase limit 10;
-- h18
select i64_1, extract(minute from event_time) as m, search_phrase, count(*) from hits group by i64_1, m, search_phrase order by count(*) desc, i64_1, m, search_phrase limit 10;
-- h19
select i64_1 from hits where i64_1 = 435090932899640449;
-- h20
select count(*) from hits where url like '%decf%';
-- h21
select search_phrase, min(url), count(*) as c from hits where url like '%decf%' and search_phrase <> '' group by search_phrase order by c desc, search_phrase limit 10;
-- h22
select search_phrase, min(url), min(title), count(*) as c, count(distinct i64_1) from hits where title like '%sbcgbg%' and url not like '%.org%' and search_phrase <> '' group by search_phrase order by c desc, search_phrase limit 10;
-- h23
select * from hits where url like '%decf%' order by event_time, i64_0 limit 10;
-- h24
select search_phrase from hits where search_phrase <> '' order by event_time, search_phrase limit 10;
-- h25
select search_phrase from hits where search_phrase <> '' order by search_phrase limit 10;
-- h27
select i32_1, avg(length(url)) as l, count(*) as c from hits where url <> '' group by i32_1 having count(*) > 100 order by l desc, i32_1 limit 25;
-- h28
select regexp_replace(referer, '^https?://(?:www\.)?([^/]+)/.*$', '\1') as k, avg(length(referer)) as l, count(*) as c, min(referer) from hits where referer <> '' group by k having count(*) > 100 order by l desc, k limit 25;
-- h29
select sum(i16_1), sum(i16_1 + 1), sum(i16_1 + 2), sum(i16_1 + 3), sum(i16_1 + 4), sum(i16_1 + 5) from hits;
-- h30
select i16_5, i32_0, count(*) as c, sum(i16_0), avg(i16_4) from hits where search_phrase <> '' group by i16_5, i32_0 order by c desc, i16_5, i32_0 limit 10;
-- h32
select i64_0, i32_0, count(*) as c, sum(i16_0), avg(i16_4) from hits group by i64_0, i32_0 order by c desc, i64_0, i32_0 limit 10;
-- h33
select url, count(*) as c from hits group by url order by c desc, url limit 10;
-- h36
select url, count(*) as views from hits where i32_1 = 62 and event_date >= date '2013-07-01' and event_date <= date '2013-07-31' and i16_0 = 0 and url <> '' group by url order by views desc, url limit 10;
-- h41
select i16_1, i16_4, count(*) as views from hits where i32_1 = 62 and event_date >= date '2013-07-01' and i16_0 = 0 group by i16_1, i16_4 order by views desc, i16_1, i16_4 limit 10;
