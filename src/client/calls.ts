import { path, type Tagged, type WriteOptions } from './operations.js';
import { OperatorCalls } from './operator-calls.js';
import type { CallOptions } from './transport.js';
import type * as Api from './types.js';

/** All operations of the API, by their names; statements of xAPI are for its own clients. All reject with a SkilltraceError. */
export class Calls extends OperatorCalls {
  /** A page of the skills that were set or answered. */
  async skills(query: Api.PageQuery & CallOptions = {}): Promise<Api.SkillPage> {
    return this.get('/api/v1/skills', query);
  }

  async skill(skillId: string, options: CallOptions = {}): Promise<Tagged<Api.Skill>> {
    return this.tagged({ method: 'GET', path: path`/api/v1/skills/${skillId}` }, options);
  }

  /** Replaces the whole entry of the catalogue. */
  async setSkill(
    skillId: string,
    skill: Api.SkillSetting,
    options: WriteOptions = {},
  ): Promise<Tagged<Api.Skill>> {
    return this.put(path`/api/v1/skills/${skillId}`, skill, options);
  }

  /** How all learners do on each skill that has answers. */
  async skillStatistics(query: Api.PageQuery & CallOptions = {}): Promise<Api.SkillStatisticsPage> {
    return this.get('/api/v1/skill-statistics', query);
  }

  /** How all learners do on a skill, answer by answer and week by week. */
  async statisticsOfSkill(skillId: string, options: CallOptions = {}): Promise<Api.SkillStatistics> {
    return this.get(path`/api/v1/skills/${skillId}/statistics`, options);
  }

  /** A page of the items of a skill, the hardest first. */
  async skillItems(skillId: string, query: Api.PageQuery & CallOptions = {}): Promise<Api.SkillItemPage> {
    return this.get(path`/api/v1/skills/${skillId}/items`, query);
  }

  /** Takes a skill that has few answers off the known ones. */
  async deleteSkill(skillId: string, options: WriteOptions = {}): Promise<Api.DeletedSkill> {
    return this.remove(path`/api/v1/skills/${skillId}`, options);
  }

  /** How statements of xAPI become answers. */
  async xapiMapping(options: CallOptions = {}): Promise<Tagged<Api.XapiMapping>> {
    return this.tagged({ method: 'GET', path: '/api/v1/xapi-mapping' }, options);
  }

  /** Replaces the whole mapping: what is left out is as it is unset. */
  async setXapiMapping(
    mapping: Api.XapiMappingSetting,
    options: WriteOptions = {},
  ): Promise<Tagged<Api.XapiMapping>> {
    return this.put('/api/v1/xapi-mapping', mapping, options);
  }

  async erasure(erasureId: string, options: CallOptions = {}): Promise<Api.Erasure> {
    return this.get(path`/api/v1/erasures/${erasureId}`, options);
  }

  /** State of the service's parts, also where it is down. */
  async health(options: CallOptions = {}): Promise<Api.Health> {
    return this.data({ method: 'GET', path: '/api/v1/health', alsoFine: [503] }, options);
  }

  /** Whether the process is alive. */
  async livez(options: CallOptions = {}): Promise<Api.Liveness> {
    return this.probe('/livez', options);
  }

  /** Whether the service takes traffic. */
  async readyz(options: CallOptions = {}): Promise<Api.Readiness> {
    return this.probe('/readyz', options);
  }

  /** Figures in the Prometheus text format. */
  async metrics(options: CallOptions = {}): Promise<string> {
    return (await this.transport.call({ method: 'GET', path: '/metrics' }, options)).text;
  }
}
