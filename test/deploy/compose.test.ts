import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { parse } from 'yaml';
import { createProgram } from '../../src/cli/program.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const read = (path: string): string => readFileSync(join(root, path), 'utf8');

interface Service {
  readonly image: string;
  readonly build?: string;
  readonly user?: string;
  readonly init?: boolean;
  readonly command?: readonly string[];
  readonly environment?: Readonly<Record<string, string | number>>;
  readonly ports?: readonly string[];
  readonly volumes?: readonly string[];
  readonly depends_on?: Readonly<Record<string, { condition: string }>>;
  readonly healthcheck?: { readonly test: readonly string[] };
  readonly stop_grace_period?: string;
}

interface Package {
  readonly version: string;
  readonly scripts: Readonly<Record<string, string>>;
}

const text = read('docker-compose.yml');
const compose = parse(text, { merge: true }) as { services: Record<string, Service>; volumes: Record<string, unknown> };
const services = Object.entries(compose.services);
const ours = services.filter(([, service]) => service.build !== undefined);
const packageJson = JSON.parse(read('package.json')) as Package;
const dockerfile = read('Dockerfile');

/** All of our sources, in which a setting must be read. */
const sources = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.ts'))
  .map((path) => read(join('src', path)))
  .join('\n');
const envconfig =
  read('node_modules/@temporalio/envconfig/lib/envconfig.js') + read('node_modules/@temporalio/envconfig/lib/utils.js');

describe('docker-compose.yml', () => {
  it('is valid by the published Compose schema', () => {
    const ajv = new Ajv2020({ strict: false, allErrors: true });
    addFormats.default(ajv);
    const validate = ajv.compile(JSON.parse(read('test/fixtures/compose-spec.json')) as object);
    assert.ok(validate(compose), ajv.errorsText(validate.errors, { separator: '\n' }));
    assert.equal(validate({ services: { worker: { imagination: 'repave' } } }), false);
  });

  it('has a database, Temporal, the migration and a worker', () => {
    assert.deepEqual(Object.keys(compose.services).sort(), ['migrate', 'postgres', 'temporal', 'worker']);
  });

  it('pins every image, none of them Alpine', () => {
    for (const [name, { image }] of services) assert.match(image, /^[a-z0-9/]+:\d+\.\d+(\.\d+)?(-[a-z]+)?$/, name);
    for (const [, { image }] of services) assert.doesNotMatch(image, /alpine/);
    for (const [name, { image }] of ours) assert.equal(image, `repave:${packageJson.version}`, name);
  });

  it('opens ports on this machine alone, at the places the servers listen', () => {
    const ports = services.flatMap(([, service]) => service.ports ?? []);
    assert.deepEqual([...ports].sort(), ['127.0.0.1:5432:5432', '127.0.0.1:7233:7233', '127.0.0.1:8233:8233']);
    assert.equal(compose.services.worker?.environment?.TEMPORAL_ADDRESS, 'temporal:7233');
    assert.match(String(compose.services.worker?.environment?.DATABASE_URL), /@postgres:5432\/warehouse$/);
  });

  it('sets nothing that is not read', () => {
    const names = ours.flatMap(([, service]) => Object.keys(service.environment ?? {}));
    assert.ok(names.length >= 6);
    for (const name of new Set(names)) {
      const reader = name.startsWith('TEMPORAL_') ? sources + envconfig : sources;
      assert.ok(new RegExp(`\\b${name}\\b`).test(reader), `${name} is read nowhere`);
    }
  });

  it('has a default for every variable', () => {
    const variables = text.match(/\$\{[^}]*\}/g) ?? [];
    assert.ok(variables.length >= 5);
    for (const variable of variables) assert.match(variable, /^\$\{[A-Z_]+:-[^}]+\}$/);
  });

  it('runs commands that there are, with flags that they take', () => {
    const program = createProgram();
    const lines = ours.map(([, service]) => service.command ?? []);
    lines.push((compose.services.worker?.healthcheck?.test ?? []).slice(3));
    for (const [name, ...rest] of lines) {
      const command = program.commands.find((candidate) => candidate.name() === name);
      assert.ok(command, `repave ${name} is no command`);
      for (const flag of rest.filter((word) => word.startsWith('--'))) {
        assert.ok(
          command.options.some((option) => option.long === flag),
          `repave ${name} takes no ${flag}`,
        );
      }
    }
  });

  it('names files and volumes that there are', () => {
    for (const [name, service] of services) {
      for (const volume of service.volumes ?? []) {
        const source = volume.split(':')[0] ?? '';
        if (source.startsWith('./')) assert.ok(existsSync(join(root, source)), `${name}: ${source} is not there`);
        else assert.ok(source in compose.volumes, `${name}: no volume ${source}`);
      }
    }
  });

  it('waits only for what can be waited for', () => {
    for (const [name, service] of services) {
      for (const [other, { condition }] of Object.entries(service.depends_on ?? {})) {
        const target = compose.services[other];
        assert.ok(target, `${name} waits for ${other}, which is no service`);
        if (condition === 'service_healthy') assert.ok(target.healthcheck, `${other} has no health check`);
        else assert.equal(condition, 'service_completed_successfully');
      }
    }
  });

  it('runs ours as no root, under an init, and gives fills time to end', () => {
    for (const [name, service] of ours) {
      assert.equal(service.user, 'node', name);
      assert.equal(service.init, true, name);
    }
    const worker = compose.services.worker;
    const grace = Number(/^(\d+)s$/.exec(worker?.stop_grace_period ?? '')?.[1]);
    assert.ok(grace > Number(worker?.environment?.REPAVE_SHUTDOWN_GRACE), `${grace}`);
  });
});

describe('Dockerfile', () => {
  it('builds on pinned, slim, glibc images and ends as no root', () => {
    const images = [...dockerfile.matchAll(/^FROM (\S+)/gm)].map((match) => match[1]);
    assert.ok(images.length === 2 && new Set(images).size === 1);
    assert.match(images[0] ?? '', /^node:\d+\.\d+\.\d+-bookworm-slim$/);
    assert.match(dockerfile, /^USER node$/m);
    assert.ok(dockerfile.indexOf('ca-certificates') > dockerfile.lastIndexOf('FROM'));
  });

  it('runs scripts of the package and copies what they make', () => {
    for (const [, script] of dockerfile.matchAll(/npm run ([\w:]+)/g))
      assert.ok(packageJson.scripts[script ?? ''], script);
    assert.match(dockerfile, /COPY --from=build \/src\/build\/image\/ \.\//);
    assert.match(read('scripts/build-image.js'), /build\/image/);
  });

  it('is handed every file that its build needs', () => {
    const letIn = read('.dockerignore')
      .split('\n')
      .filter((row) => row.startsWith('!'))
      .map((row) => row.slice(1));
    for (const path of letIn) assert.ok(existsSync(join(root, path)), path);
    for (const path of ['package.json', 'package-lock.json', 'tsconfig.json', 'bin', 'scripts', 'src', 'pipelines']) {
      assert.ok(letIn.includes(path), path);
    }
  });
});
