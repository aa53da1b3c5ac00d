/** Takes out of ClickHouse what a tenant has beside its learners: what it set of its skills, its models, webhooks and mapping. */
import type { ClickHouseClient } from '@clickhouse/client';
import { runStatement } from '../clickhouse/client.js';
import { type Cluster, deleteFrom } from '../clickhouse/ddl.js';
import { modelVersions, skillChanges, skillParameters, webhooks, xapiMappings } from '../schema/tables.js';

/** To be called when Redis has none of it any more: what it publishes is copied again. */
export async function removeTenantFacts(
  client: ClickHouseClient,
  tenant: string,
  cluster: Cluster = null,
): Promise<void> {
  for (const { name } of [skillChanges, skillParameters, modelVersions, webhooks, xapiMappings]) {
    const statement = `${deleteFrom(name, cluster)} WHERE tenant = {tenant:String}`;
    await runStatement(client, statement, { params: { tenant } });
  }
}
