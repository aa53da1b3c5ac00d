import type { ClickHouseClient } from '@clickhouse/client';
import { runStatement } from '../clickhouse/client.js';
import { buildDeleteFrom, type ClusterName } from '../clickhouse/ddl.js';
import { tenantSettings, xapiMappings } from '../schema/deployment-tables.js';
import { groupChanges } from '../schema/group-tables.js';
import { skillChanges, webhooks } from '../schema/journal-tables.js';
import { modelVersions, skillParameters } from '../schema/model-tables.js';

const tables = [
  skillChanges,
  groupChanges,
  skillParameters,
  modelVersions,
  webhooks,
  xapiMappings,
  tenantSettings,
];

/** Remove the facts from Redis first, because it copies them to ClickHouse. */
export async function removeTenantFacts(
  client: ClickHouseClient,
  tenant: string,
  cluster: ClusterName = null,
): Promise<void> {
  for (const { name } of tables) {
    const statement = `${buildDeleteFrom(name, cluster)} WHERE tenant = {tenant:String}`;
    await runStatement(client, statement, { params: { tenant } });
  }
}
