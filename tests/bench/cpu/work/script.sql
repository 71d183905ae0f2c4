-- A database in memory: rows with text, two indexes, updates, joins, groups.
PRAGMA temp_store = memory;
CREATE TABLE item (id INTEGER PRIMARY KEY, name TEXT, owner INTEGER, note TEXT);
CREATE TABLE owner (id INTEGER PRIMARY KEY, name TEXT);
WITH RECURSIVE n(k) AS (SELECT 1 UNION ALL SELECT k + 1 FROM n WHERE k < :rows)
INSERT INTO item SELECT k, printf('item %x', k * 7919 % 65536), k % 997, printf('%.*c', k % 60, 'x') FROM n;
INSERT INTO owner SELECT DISTINCT owner, printf('owner %d', owner) FROM item;
CREATE INDEX item_name ON item (name);
CREATE INDEX item_owner ON item (owner, name);
UPDATE item SET note = note || name WHERE id % 3 = 0;
DELETE FROM item WHERE id % 10 = 7;
SELECT count(*), sum(length(note)), sum(length(group_concat)) FROM
	(SELECT note, group_concat(o.name) AS group_concat FROM item i JOIN owner o ON o.id = i.owner GROUP BY i.name);
SELECT sum(length(name)) FROM (SELECT DISTINCT substr(note, 1, 7) || name AS name FROM item ORDER BY name DESC);
