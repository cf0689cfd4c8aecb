"""A third set of made-up secrets: the ways they stand in what coding agents write down.

Commands, diffs, files shown with line numbers, JSON inside JSON, environment dumps, keys cut off or wrapped, tables.
Every value is random; none is a real credential. ``cases(seed)`` gives ``(notation, secret, text)``; a case passes
when no 12-character piece of the secret survives redaction (the whole secret, where it is shorter).
"""

from __future__ import annotations

import base64
import json
import random
import string
from collections.abc import Callable, Iterator

ALNUM = string.ascii_letters + string.digits
URL = ALNUM + "-_"
BASE64 = ALNUM + "+/"
HEX = "0123456789abcdef"
WORDS = (
    "anchor",
    "barge",
    "canvas",
    "delta",
    "ember",
    "fjord",
    "gravel",
    "harbor",
    "island",
    "jetty",
    "kettle",
    "lantern",
)

# A line of an .env file as agents' tools print it: {} is NAME=value.
SHOWN = {
    "cat": "$ cat .env\nDEBUG=1\n{}\nPORT=80",
    "cat -n": "     1\tDEBUG=1\n     2\t{}\n     3\tPORT=80",
    "read tool": "     1→DEBUG=1\n     2→{}\n     3→PORT=80\n",
    "numbered colon": "1: DEBUG=1\n12: {}",
    "numbered bar": "   1 | DEBUG=1\n  12 | {}",
    "boxed": "│ 12 │ {}\n",
    "bar": "| {}\n",
    "grep -n": ".env:12:{}",
    "grep context": ".env-11-DEBUG=1\n.env:12:{}\n.env-13-PORT=80",
    "grep -r": "config/prod/.env:{}",
    "added": "@@ -1,2 +1,2 @@\n DEBUG=1\n+{}",
    "removed": "@@ -1,2 +1,2 @@\n-{}\n DEBUG=1",
    "word diff": "{{+{}+}}",
    "coloured diff": "\x1b[32m+{}\x1b[m",
    "commented": "# {}",
    "quoted": "> {}",
    "exported": "export {}",
    "inline": "{} npm publish",
    "docker -e": "docker run --rm -e {} image",
    "docker env": '"Env": ["PATH=/usr/bin", "{}"],',
    "compose": "    environment:\n      - {}",
    "build-arg": "docker build --build-arg {} .",
    "systemd": 'Environment="{}"',
    "heroku": "heroku config:set {} -a app",
    "in json": '{{"stdout": "DEBUG=1\\n{}\\nPORT=80"}}',
    "in json twice": '{{\\"stdout\\": \\"DEBUG=1\\\\n{}\\\\nPORT=80\\"}}',
    "heredoc": "cat > .env <<'EOF'\n{}\nEOF",
    "echo": "echo '{}' >> .env",
    "sed": "sed -i 's|^.*$|{}|' .env",
    "windows": "C:\\> set {}\r\n",
    "declare": "declare -x {}",
}

# {pw}: a password, {tok}: 40 letters and digits, {hex}: 32 hex digits, {phrase}: words, {num}: eight digits
WRITTEN = {
    "bearer": "curl -sS -H 'Authorization: Bearer {tok}' https://api.example.com/v1",
    "bearer, escaped": '{{"command": "curl -H \\"Authorization: Bearer {tok}\\" https://api.example.com"}}',
    "token header": "curl -H 'Authorization: token {hex}' https://git.example.com",
    "raw authorization": "curl -H 'Authorization: {tok}' https://api.example.com",
    "private-token": 'curl --header "PRIVATE-TOKEN: {tok}" https://git.example.com/api/v4',
    "x-api-key": "curl -H 'x-api-key: {hex}' https://api.example.com",
    "x-auth-token": "> X-Auth-Token: {tok}\n> Accept: */*",
    "curl verbose": "> GET /v1 HTTP/1.1\n> Authorization: Bearer {tok}\n> Accept: */*",
    "curl -u": "curl -u 'bob:{pw}' https://x.example.com",
    "curl --user": 'curl --user "bob:{pw}" https://x.example.com',
    "curl -u joined": "curl -ubob:{pw} https://x.example.com",
    "json body": 'curl -d \'{{"user": "bob", "password": "{pw}"}}\' https://x.example.com/login',
    "form body": "curl -d 'user=bob&password={plain}' https://x.example.com/login",
    "form field": "curl -F password={plain} https://x.example.com/login",
    "flag": "deploy --token {tok} --region eu",
    "flag=": "deploy --api-key={hex} --region eu",
    "flag quoted": "deploy --password '{pw}' --region eu",
    "flag password": "argocd login --username admin --password {pw} cd.example.com",
    "secret flag": "rclone config create r s3 --secret-access-key {tok}",
    "docker-password": "kubectl create secret docker-registry r --docker-password={pw}",
    "from-literal": "kubectl create secret generic db --from-literal=password={pw}",
    "gh secret": 'gh secret set DEPLOY_TOKEN --body "{tok}"',
    "gh secret -b": "gh secret set DEPLOY_TOKEN -b {tok}",
    "helm": "helm upgrade app . --set auth.password={pw},replicas=2",
    "terraform": "terraform apply -var='db_password={pw}'",
    "ansible": "ansible-playbook site.yml -e db_password={pw}",
    "vault": "vault kv put secret/app password={pw}",
    "aws configure": "aws configure set aws_secret_access_key {tok}",
    "npm config": "npm config set //registry.example.com/:_authToken {tok}",
    "poetry": "poetry config http-basic.internal bob {pw}",
    "ngrok": "ngrok config add-authtoken {tok}",
    "minio": "mc alias set local http://localhost:9000 AKIDLOCAL7 {tok}",
    "mysql": "mysql -h db -uroot -p{plain} prod",
    "mysqldump": "mysqldump --password={pw} prod > dump.sql",
    "pgpassword": "PGPASSWORD={pw} psql -h db.example.com -U app",
    "pgpassword quoted": "PGPASSWORD='{pw}' psql -h db.example.com -U app",
    "psql": 'psql "host=db user=app password={plain} dbname=prod"',
    "redis-cli": "redis-cli -h cache -a {plain} ping",
    "mongosh": "mongosh --host db -u app -p {plain} --authenticationDatabase admin",
    "sshpass": "sshpass -p {plain} ssh deploy@10.0.0.4",
    "openssl": "openssl pkcs12 -in a.p12 -passin pass:{plain} -nodes",
    "keytool": "keytool -list -keystore a.jks -storepass {plain}",
    "ssh-keygen": "ssh-keygen -t ed25519 -N '{pw}' -f id",
    "zip": "zip -P {plain} out.zip a.txt",
    "gpg": "gpg --batch --passphrase {plain} -d a.gpg",
    "sudo": "echo '{pw}' | sudo -S apt-get update",
    "docker login": "echo {tok} | docker login ghcr.io -u bob --password-stdin",
    "herestring": "docker login -u bob --password-stdin <<< '{tok}'",
    "with-token": "gh auth login --with-token <<< {tok}",
    "chpasswd": "echo 'deploy:{pw}' | chpasswd",
    "useradd": "net use Z: \\\\host\\share /user:bob {pw}",
    "set -x": "+ API_TOKEN={tok}\n+ ./deploy",
    "fish": "set -gx API_TOKEN {tok}",
    "setx": 'setx API_TOKEN "{tok}"',
    "powershell": '$env:DB_PASSWORD = "{pw}"',
    "powershell secure": "ConvertTo-SecureString '{pw}' -AsPlainText -Force",
    "default": "export DB_PASSWORD=${{DB_PASSWORD:-{plain}}}",
    "expect": 'expect "assword:"\nsend "{pw}\\r"',
    "postgres url": "DATABASE_URL=postgres://app:{plain}@db.internal:5432/prod?sslmode=require",
    "url, special": "DATABASE_URL=postgresql+asyncpg://app:{pw}@db.internal/prod",
    "url in json": '{{"url": "mongodb+srv://svc:{plain}@c0.example.net/x"}}',
    "amqp": "amqp://svc:{plain}@mq.internal:5672/vhost",
    "url token": "git clone https://{tok}@git.example.com/a/b.git",
    "x-access-token": "git remote set-url origin https://x-access-token:{tok}@git.example.com/a/b",
    "jdbc": "jdbc:postgresql://db:5432/prod?user=app&password={plain}&ssl=true",
    "sqlserver": "jdbc:sqlserver://db:1433;databaseName=p;user=sa;password={pw};encrypt=true",
    "ado": "Server=tcp:db,1433;Database=p;User ID=sa;Password={pw};Encrypt=True",
    "pwd": "Data Source=db;User Id=sa;Pwd={pw};",
    "azure": "AccountName=acct;AccountKey={b64};EndpointSuffix=core.windows.net",
    "service bus": "Endpoint=sb://n.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey={key44}",
    "query token": "GET https://api.example.com/v1/items?token={hex}&page=2",
    "query access_token": "https://app.example.com/cb#access_token={tok}&expires_in=3600",
    "query key": "https://maps.example.com/js?libraries=places&key={tok}",
    "query api_key": "https://api.example.com/v1?api_key={hex}",
    "query sig": "https://acct.blob.example.net/c?sv=2022-11-02&sig={sig}&se=2026",
    "presigned": "https://b.s3.example.com/k?X-Amz-Security-Token={sig}&X-Amz-Expires=60",
    "cookie": "Cookie: theme=dark; session={tok}",
    "set-cookie": "< Set-Cookie: sid={tok}; Path=/; HttpOnly",
    "curl -b": "curl -b 'sessionid={tok}' https://x.example.com",
    "cookie jar": "#HttpOnly_.example.com\tTRUE\t/\tTRUE\t1790000000\tsessionid\t{tok}",
    "json": '{{"user": "bob", "password": "{pw}"}}',
    "json, escaped": '{{"content": "{{\\"user\\": \\"bob\\", \\"password\\": \\"{pw}\\"}}"}}',
    "json, twice": '{{\\\\\\"user\\\\\\": \\\\\\"bob\\\\\\", \\\\\\"password\\\\\\": \\\\\\"{pw}\\\\\\"}}',
    "json, pretty": '+    "apiKey": "{hex}",\n+    "region": "eu"',
    "json, numbered": '     4→    "clientSecret": "{tok}",',
    "json, unicode quotes": "{{\\u0022password\\u0022: \\u0022{plain}\\u0022}}",
    "html entities": "{{&quot;password&quot;: &quot;{plain}&quot;}}",
    "sts": '"Credentials": {{"SecretAccessKey": "{tok}", "Expiration": "2026"}}',
    "yaml, numbered": "    12→  password: {pw}",
    "yaml, diff": "-  db_password: '{pw}'\n+  db_password: ''",
    "yaml, bare word": "password: swordfish{num}",
    "k8s env": "- name: DB_PASSWORD\n  value: {pw}",
    "k8s env, diff": '+        - name: DB_PASSWORD\n+          value: "{pw}"',
    "k8s env, numbered": '    10→        - name: DB_PASSWORD\n    11→          value: "{pw}"',
    "toml": '[database]\npassword = "{pw}"',
    "ini": "[db]\npassword = {pw}",
    "properties": "+spring.datasource.password={pw}",
    "netrc": "machine api.example.com\n  login bob\n  password {plain}",
    "pgpass": "db.example.com:5432:prod:app:{plain}",
    "npmrc": "     1→//registry.example.com/:_authToken={tok}",
    "git credential": "protocol=https\nhost=git.example.com\nusername=bob\npassword={tok}",
    "wireguard": "[Interface]\nPrivateKey = {key44}",
    "python": '+    client = connect("db", user="app", password="{pw}")',
    "python environ": 'os.environ["API_TOKEN"] = "{tok}"',
    "python default": 'os.environ.get("DB_PASSWORD", "{pw}")',
    "python dict": "settings = {{'PASSWORD': '{pw}', 'HOST': 'db'}}",
    "fallback": "password: process.env.DB_PASSWORD || '{pw}',",
    "typescript": 'const apiKey: string = "{hex}";',
    "ruby": ":password => '{pw}'",
    "go": 'Password: "{pw}",',
    "go short": 'dbPassword := "{pw}"',
    "java": 'private static final String API_KEY = "{hex}";',
    "setter": 'dataSource.setPassword("{pw}");',
    "define": '#define API_KEY "{hex}"',
    "sql": "CREATE ROLE app LOGIN PASSWORD '{pw}';",
    "markdown": "- **Password:** {pw}",
    "markdown, outside": "- **Password**: `{pw}`",
    "markdown table": "| user | bob |\n| password | {pw} |",
    "markdown table, padded": "| password      | {pw}  |",
    "box table": "│ password  │ {pw} │",
    "html table": "<td>Password</td><td>{pw}</td>",
    "psql table": " bob | x\n password | {pw}",
    "prose": "the db password is {pw}, please keep it",
    "prose, colon": "login with bob, password: {pw}",
    "prose, short token": "the token is {short} for now",
    "prose, short token colon": "use token: {short}",
    "prose, digits": "the wifi password is {num}",
    "prose, quoted": "The password is '{pw}'.",
    "prose, backticks": "Set the token to `{tok}` first",
    "prose, chinese": "密码是{pw}，请保存",
    "prose, chinese colon": "数据库密码：{pw}",
    "prose, chinese token": "访问令牌为{tok}。",
    "prose, japanese": "パスワードは{plain}です",
    "prose, korean": "비밀번호: {pw}",
    "prose, german": "Das Passwort lautet {pw}",
    "prose, french": "le mot de passe est {pw}",
    "prose, spanish": "la contraseña es {pw}",
    "below": "Here is the API key:\n\n```\n{tok}\n```",
    "below, line": "API token:\n{tok}\nthanks",
    "grep colour": "config.yml:\x1b[01;31m\x1b[Kpassword\x1b[m\x1b[K: {pw}",
    "requests": 'requests.post(url, auth=("bob", "{pw}"))',
    "libpq, code": 'psycopg2.connect("dbname=p user=app password={pw}")',
    "prompt": "Password for user bob: {pw}",
    "clojure": ':password "{pw}"',
    "redis.conf": "requirepass {pw}",
    "log line": 'level=info msg="login" password={pw} user=bob',
    "session token": "aws_session_token = {b64}",
    "vendor header": 'curl -H "DD-API-KEY: {hex}" https://api.example.com',
    "subscription key": "Ocp-Apim-Subscription-Key: {hex}",
    "rails": "SECRET_KEY_BASE={hex}",
    "laravel": "APP_KEY=base64:{key44}",
    "dsn": "SENTRY_DSN=https://{hex}@o1.ingest.example.io/2",
    "user and pass": "user: bob pass: {pw}",
    "heading": "## Admin password: {pw}",
    "comment": "// password: {pw}",
    "trailing comment": "DB_PASSWORD={pw}  # rotate in May",
    "yaml list": "env:\n  - DB_PASSWORD={pw}",
    "url-encoded form": "username=bob&password={plain}%21&remember=1",
    "cli with equals": "vault login -method=userpass username=bob password={pw}",
    "ssh config": "SSHPASS='{pw}' sshpass -e ssh host",
    "proxy": "export HTTPS_PROXY=http://bob:{plain}@proxy.example.com:3128",
    "pip": "pip install --index-url https://bob:{plain}@pypi.example.com/simple x",
    "twine": "TWINE_USERNAME=__token__ TWINE_PASSWORD={tok} twine upload dist/*",
    "passphrase, env": 'DB_PASSWORD="{phrase}"',
    "passphrase, flag": "gpg --batch --passphrase '{phrase}' -d a.gpg",
    "passphrase, json": '{{"passphrase": "{phrase}"}}',
    "passphrase, code": 'password = "{phrase}"',
    "passphrase, yaml": "passphrase: {phrase}\nport: 80",
}

# Tokens that are known by their look, wherever they stand.
AROUND = {
    "slash": "see https://example.com/tokens/{} for it",
    "after a slash": "vault/{}",
    "glued to chinese": "凭证为{}，请保存",
    "parentheses": "({})",
    "backticks": "`{}`",
    "angle": "<{}>",
    "quotes escaped": '\\"{}\\"',
    "newline escaped": "token\\n{}\\nrest",
    "coloured": "\x1b[33m{}\x1b[0m",
    "coloured, escaped": "\\u001b[33m{}\\u001b[0m",
    "path": "s3://{}/x",
    "list": "- {}\n- x",
    "numbered": "     7→{}",
    "added": "+{}",
    "colon": "x:{}",
    "comma": "a,{},b",
    "equals": "x={}",
    "at": "{}@example",
    "sentence": "It is {}.",
    "wrapped": "x" * 58 + " {wrapped}\nnext line",
}


def some(rng: random.Random, count: int, alphabet: str = ALNUM) -> str:
    return "".join(rng.choice(alphabet) for _ in range(count))


def cases(seed: int) -> Iterator[tuple[str, str, str]]:
    rng = random.Random(seed)
    for notation, template in SHOWN.items():
        token, word, phrase = some(rng, 24), password(rng), passphrase(rng)
        yield f"token, {notation}", token, template.format(f"API_TOKEN={token}")
        yield f"password, {notation}", word, template.format(f"DB_PASSWORD={word}")
        yield f"password quoted, {notation}", word, template.format(f"DB_PASSWORD={_quote(notation, word)}")
        yield f"phrase, {notation}", phrase, template.format(f"DB_PASSWORD={_quote(notation, phrase)}")
    for notation, template in WRITTEN.items():
        values = written(rng)
        (name,) = (each for each in values if "{" + each + "}" in template)
        yield notation, values[name], template.format(**values)
    for vendor, token in tokens(rng).items():
        for around, template in AROUND.items():
            if around == "wrapped" and len(token) < 30:  # too few characters are left for the second line
                continue
            yield f"{vendor}, {around}", token, template.format(token, wrapped=token[:18] + "\n" + token[18:])
    yield from blocks(rng)


def written(rng: random.Random) -> dict[str, str]:
    return {
        "pw": password(rng),
        "plain": some(rng, 6) + "x7Q" + some(rng, 5),
        "tok": some(rng, 40),
        "hex": some(rng, 32, HEX),
        "short": "k7" + some(rng, 6, string.ascii_lowercase + string.digits) + "9q",
        "num": some(rng, 7, "23456789") + "0",
        "b64": some(rng, 86, BASE64) + "==",
        "key44": some(rng, 43, BASE64) + "=",
        "sig": some(rng, 43, ALNUM) + "%3D",
        "phrase": passphrase(rng),
    }


def password(rng: random.Random) -> str:
    return "Kv7#" + some(rng, 6) + "!q2"


def passphrase(rng: random.Random) -> str:
    return " ".join(rng.sample(WORDS, 4))


def tokens(rng: random.Random) -> dict[str, str]:
    def part(value: object) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    return {
        "github": "ghp_" + some(rng, 36),
        "anthropic": "sk-ant-api03-" + some(rng, 93, URL) + "AA",
        "aws": "AKIA" + some(rng, 16, string.ascii_uppercase + "234567"),
        "google": "AIza" + some(rng, 35, URL),
        "slack": f"xoxb-{some(rng, 12, string.digits)}-{some(rng, 24)}",
        "jwt": f"{part({'alg': 'HS256', 'typ': 'JWT'})}.{part({'sub': some(rng, 10)})}.{some(rng, 43, URL)}",
    }


def blocks(rng: random.Random) -> Iterator[tuple[str, str, str]]:
    """Keys of many lines, whole and in pieces, and what is encoded once more."""
    body = ["MIIEpAIBAAKCAQEA" + some(rng, 48, BASE64), *(some(rng, 64, BASE64) for _ in range(12))]
    first, last = "-----BEGIN RSA PRIVATE KEY-----", "-----END RSA PRIVATE KEY-----"
    whole = [first, *body, last]
    inner, text = body[6], "\n".join(whole)
    numbered = [f"{number:6}→{line}" for number, line in enumerate(whole, 1)]
    encoded = base64.b64encode(text.encode()).decode()
    wrapped = "\n".join(encoded[at : at + 76] for at in range(0, len(encoded), 76))
    opaque = base64.b64encode(f"GITHUB_TOKEN=ghp_{some(rng, 36)}\n".encode()).decode()
    shown: dict[str, Callable[[str], str]] = {
        "cat -n": lambda line: f"     9\t{line}",
        "read tool": lambda line: f"     9→{line}",
        "numbered colon": lambda line: f"9: {line}",
        "numbered bar": lambda line: f" 9 | {line}",
        "added": lambda line: "+" + line,
        "removed": lambda line: "-" + line,
        "grep": lambda line: f"id_rsa:9:{line}",
        "quoted": lambda line: "> " + line,
        "boxed": lambda line: f"│ {line} │",
        "literal": lambda line: f'    "{line}\\n"',
        "env": lambda line: line + "\\n",
    }
    for notation, show in shown.items():
        ends = "" if notation == "env" else "\n"
        yield f"key, {notation}", inner, ends.join(map(show, whole))
        yield f"key without end, {notation}", inner, ends.join(map(show, whole[:-3]))
        yield f"key without beginning, {notation}", inner, ends.join(map(show, whole[3:]))
    cut = "\n".join([*whole[:5], "... [4 lines truncated] ...", *whole[9:]])
    yield "key cut in the middle, before", body[2], cut
    yield "key cut in the middle, after", body[10], cut
    yield "key numbered, cut", body[10], "\n".join([*numbered[:4], "     ...", *numbered[8:]])
    yield "key without any mark", body[0], "\n".join(body[:6])
    yield "key without any mark, inside", body[4], "\n".join(body[:6])
    yield "key in json", inner, json.dumps({"private_key": text})
    yield "key in json twice", inner, json.dumps(json.dumps({"private_key": text}))
    yield "key in one line of env", inner, f'PRIVATE_KEY="{text.replace(chr(10), chr(92) + "n")}"'
    yield "key in base64", encoded[300:360], f"data:\n  tls.key: {encoded}\n"
    yield "key in base64, lines", encoded[304:360], f"$ base64 id_rsa\n{wrapped}\n$"
    yield "key in base64, piped", encoded[300:360], f"echo {encoded} | base64 -d > id_rsa"
    yield "token in base64", opaque[20:50], f"data:\n  env: {opaque}\n"
    yield "url in base64", *_encoded(f"postgres://app:{some(rng, 16)}@db:5432/prod")
    yield "key in base64 of an environment", *_encoded(f"API_TOKEN={some(rng, 40)}")


def _encoded(text: str) -> tuple[str, str]:
    encoded = base64.b64encode(text.encode()).decode()
    return encoded[20:44], f"data:\n  thing: {encoded}\n"


def _quote(notation: str, value: str) -> str:
    """A value in quotes that do not end the string it stands in."""
    if notation == "in json twice":
        return f'\\\\\\"{value}\\\\\\"'
    if notation in ("in json", "systemd", "docker env"):
        return f'\\"{value}\\"'
    return f'"{value}"'
