/**
 * The schema on a ClickHouse cluster (ADR 17): a replicated table NAME_local on every shard holds the rows, and the
 * name that everybody knows is a Distributed table over it. Materialized views run where rows are stored. Without a
 * cluster each function returns what holds on one server.
 */
import type { ClickHouseSettings } from '@clickhouse/client';
import { createTable, quote, type Table } from './table.js';

/** Name of the cluster in the servers' `remote_servers`; null: one server. */
export type Cluster = string | null;

/** The table that holds the rows. */
export const storedName = (name: string, cluster: Cluster): string =>
  cluster === null ? name : `${name}_local`;

/** A name as DDL has it that is meant for every server. */
export const everywhere = (name: string, cluster: Cluster): string =>
  cluster === null ? name : `${name} ON CLUSTER ${cluster}`;

export function createTables(table: Table, cluster: Cluster): string[] {
  if (cluster === null) return [createTable(table)];
  const stored = storedName(table.name, cluster);
  return [
    createTable({
      ...table,
      name: everywhere(stored, cluster),
      engine: replicated(table.engine),
      settings: replicatedSettings(table.settings),
    }),
    [
      `CREATE TABLE IF NOT EXISTS ${everywhere(table.name, cluster)} AS ${stored}`,
      `ENGINE = Distributed(${cluster}, currentDatabase(), ${stored}, ${table.shardBy})`,
      `COMMENT ${quote(table.comment)}`,
    ].join('\n'),
  ];
}

/** Arguments of the engine come after the replica's place. */
const replicated = (engine: string): string =>
  engine.replace(
    /^(\w+)(?:\((.*)\))?$/,
    (_, name: string, argument?: string) =>
      `Replicated${name}('/clickhouse/tables/{database}/{table}/{shard}', '{replica}'${argument ? `, ${argument}` : ''})`,
  );

/** Replicas share the tokens that they remember. */
const replicatedSettings = (settings: Readonly<Record<string, number>>): Record<string, number> =>
  Object.fromEntries(
    Object.entries(settings).map(([name, value]) => [name.replace(/^non_replicated_/, 'replicated_'), value]),
  );

/**
 * The beginning of a statement that deletes rows; WHERE follows. An ALTER is carried out by one replica of a shard and
 * reaches the others in order. Every replica would apply a DELETE, one that was unavailable when it is back:
 * it would remove what was inserted since.
 */
export const deleteFrom = (name: string, cluster: Cluster): string =>
  cluster === null
    ? `DELETE FROM ${name}`
    : `ALTER TABLE ${everywhere(storedName(name, cluster), cluster)} DELETE`;

/** Drops all rows of a partition, which is a number; again, when it is gone, does nothing. */
export const dropPartition = (name: string, partition: number, cluster: Cluster): string =>
  `ALTER TABLE ${everywhere(storedName(name, cluster), cluster)} DROP PARTITION ${partition}`;

/** Makes the replicas of a table have all that any of them took; null where there is one server. */
export const catchUp = (name: string, cluster: Cluster): string | null =>
  cluster === null ? null : `SYSTEM SYNC REPLICA ON CLUSTER ${cluster} ${storedName(name, cluster)}`;

/** What exactly-once rests on, whatever the account's profile says. */
export const clusterSettings: ClickHouseSettings = {
  // Done means that the shards have the rows, on most of their replicas: the outbox forgets them then.
  distributed_foreground_insert: 1,
  insert_quorum: 'auto',
  // Subqueries are asked once, not by every shard of its own rows.
  distributed_product_mode: 'global',
  // Waits for no replica that is unavailable, which catches up when it is back. Newer than the client's list of values.
  distributed_ddl_output_mode: 'none_only_active' as 'none',
  // Repairs delete what a subquery names; nobody else changes these rows meanwhile.
  allow_nondeterministic_mutations: 1,
  mutations_sync: '1',
};
