import type { ClickHouseClient } from '@clickhouse/client';
import type { AnswerHistory, TenantAnswers } from '../../services/models/fit-ports.js';
import { selectRows } from '../clickhouse/client.js';

const query = `SELECT tenant, toUInt32(count()) AS answers, concat(toString(answers), ' ', toString(max(received_at))) AS mark
FROM attempts GROUP BY tenant ORDER BY tenant`;

export const createAnswerHistory = (client: ClickHouseClient): AnswerHistory => ({
  tenants: () => selectRows<TenantAnswers>(client, query),
});
