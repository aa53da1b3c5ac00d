import { path } from './operations.js';
import type { CallOptions } from './transport.js';
import type * as Api from './types.js';
import { WebhookCalls } from './webhook-calls.js';

/** Operations on the tenant's model. All reject with a SkilltraceError. */
export class ModelCalls extends WebhookCalls {
  /** A page of the changes of the model, newest first. */
  async modelVersions(query: Api.PageQuery & CallOptions = {}): Promise<Api.ModelVersionPage> {
    return this.get('/api/v1/model/versions', query);
  }

  /** A page of a version's skills. */
  async modelVersion(version: number, query: Api.PageQuery & CallOptions = {}): Promise<Api.ModelVersion> {
    return this.get(path`/api/v1/model/versions/${`${version}`}`, query);
  }

  /** Puts an earlier version into force again. */
  async rollBack(rollback: Api.Rollback, options: CallOptions = {}): Promise<Api.UsedVersion> {
    return this.post('/api/v1/model/rollback', rollback, options);
  }

  /** How often answers were right that were given a probability. */
  async reliability(query: Api.ReliabilityQuery & CallOptions = {}): Promise<Api.Reliability> {
    return this.get('/api/v1/model/reliability', query);
  }

  /** How often the intervals of served forecasts held. */
  async coverage(options: CallOptions = {}): Promise<Api.Coverage> {
    return this.get('/api/v1/model/coverage', options);
  }
}
