/** Records successful calls of routes with an `activity`, after the change. */
import { toKeyId } from '../contracts/access/access.js';
import type { ActivityEntry } from '../contracts/access/activity.js';
import type { Logger } from '../logger.js';
import type { Reply, Route } from './route.js';

interface ActivityLog {
  append(entry: ActivityEntry): Promise<unknown>;
}

/** Fields of a response that identify the changed resource. Ids of learners are personal data. */
const targetFields = ['key_id', 'webhook_id', 'skill_id', 'group_id', 'erasure_id', 'version'] as const;

type ChangeData = Partial<Record<(typeof targetFields)[number], string | number>> & {
  readonly tenant?: string;
};

/** A failure to record is logged: the change is already made. */
export const recordActivities = (routes: readonly Route[], log: ActivityLog, logger: Logger): Route[] =>
  routes.map((route) => {
    const { activity: action } = route;
    if (action === undefined) return route;
    const handle: Route['handle'] = async (call, ...ids) => {
      const reply = (await route.handle(call, ...ids)) as Reply;
      if (reply.status >= 300) return reply;
      const data: ChangeData = JSON.parse(`${reply.body}`).data;
      const target = targetFields.map((name) => data[name]).find((id) => id !== undefined);
      const { grant } = call;
      await log
        .append({
          ...{ tenant: data.tenant ?? grant.tenant, keyId: toKeyId(grant.keyHash) },
          ...{ keyName: grant.name ?? null, action, target: target === undefined ? null : `${target}` },
        })
        .catch((error: unknown) => logger.error({ err: error, action }, 'cannot record an activity'));
      return reply;
    };
    return { ...route, handle };
  });
