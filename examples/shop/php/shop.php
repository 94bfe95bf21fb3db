<?php
// A shop that sells mugs for bitcoin: orders, invoices, webhooks, a return page, polling.
//
// php -S 127.0.0.1:5000 shop.php  serves http://127.0.0.1:5000/
// php shop.php poll               looks once for orders that were paid

declare(strict_types=1);

foreach (["BLOCKTILL_URL", "BLOCKTILL_KEY", "WEBHOOK_SECRET"] as $name) {
    if (!getenv($name)) {
        throw new RuntimeException("$name is not set: README.md says where its value is");
    }
}
define("API", getenv("BLOCKTILL_URL") . "/api/v1");
define("KEY", getenv("BLOCKTILL_KEY"));
define("SECRET", base64_decode(preg_replace("/^whsec_/", "", getenv("WEBHOOK_SECRET"))));
define("FOLDER", getenv("SHOP_FOLDER") ?: "orders");
const MUG = ["description" => "A mug", "amount_usd" => 25, "expires_in_hours" => 1];
const TOLERANCE_S = 300;
const MAX_BODY_BYTES = 65536;
const NUMBER = '/^[0-9a-f]{32}$/D';
const NAME = '/^[A-Za-z0-9_]{1,64}$/D';

// Any warning ends the request, as an exception does.
set_error_handler(function (int $level, string $message): bool {
    if (error_reporting() & $level) {
        throw new RuntimeException($message);
    }
    return true;
});

// Returns the API's answer. A request with a body is a POST, and needs the key.
function ask(string $path, ?array $body = null, string $idempotencyKey = ""): array
{
    $http = ["timeout" => 20, "header" => ["Authorization: Bearer " . KEY]];
    if ($body !== null) {
        $http["header"][] = "Content-Type: application/json";
        $http["header"][] = "Idempotency-Key: $idempotencyKey";
        $http["method"] = "POST";
        $http["content"] = json_encode($body);
    }
    $answer = file_get_contents(API . $path, false, stream_context_create(["http" => $http]));
    return json_decode($answer, true, flags: JSON_THROW_ON_ERROR);
}

// This shop keeps its orders as files. In yours they are rows of a database.

// Returns what was saved under an order's number or an invoice's id, or null.
function load(string $name): ?array
{
    $file = FOLDER . "/$name";
    if (!preg_match(NAME, $name) || !file_exists($file)) {
        return null;
    }
    return json_decode(file_get_contents($file), true, flags: JSON_THROW_ON_ERROR);
}

// Saves all of the value or, after a crash, nothing.
function save(string $name, array $value): void
{
    $draft = FOLDER . "/" . bin2hex(random_bytes(8)) . ".draft";
    file_put_contents($draft, json_encode($value));
    rename($draft, FOLDER . "/$name");
}

// Returns the order with its invoice, the same one after a crash at any line.
function place_order(string $number): array
{
    $order = load($number);
    if ($order === null) {
        $order = ["number" => $number, "wanted" => MUG];
        save($number, $order);
    }
    if (!isset($order["pay_url"])) {
        $invoice = ask("/invoices", $order["wanted"], $number);
        save($invoice["id"], ["number" => $number]);
        $order["pay_url"] = $invoice["pay_url"];
        save($number, $order);
    }
    return $order;
}

// Returns the number of the order that has this invoice, or null.
function number_of(string $invoiceId): ?string
{
    return load($invoiceId)["number"] ?? null;
}

function is_paid(string $number): bool
{
    return file_exists(FOLDER . "/$number.paid");
}

// Notes the state. Of several calls at once, only one makes or removes the file.
function set_paid(string $number, bool $paid): void
{
    $mark = FOLDER . "/$number.paid";
    $changed = $paid ? @fopen($mark, "x") : @unlink($mark);
    if ($changed !== false) {
        error_log(($paid ? "deliver" : "hold back") . " $number");
    } elseif (is_paid($number) !== $paid) {
        throw new RuntimeException("$mark cannot be changed");
    }
}

// True if the webhook comes from Blocktill, and is not an old one sent again.
function is_signed(string $id, string $sentAt, string $signatures, string $body): bool
{
    $digest = base64_encode(hash_hmac("sha256", "$id.$sentAt.$body", SECRET, true));
    foreach (explode(" ", $signatures) as $theirs) {
        if (hash_equals("v1,$digest", $theirs)) {
            $ageS = abs(time() - (int) $sentAt);
            return $ageS <= TOLERANCE_S;
        }
    }
    return false;
}

// Returns the id of an event's invoice: "" if it has none, null if it is malformed.
function invoice_id_of(string $body): ?string
{
    $data = json_decode($body, true)["data"] ?? null;
    if (!is_array($data)) {
        return null;
    }
    $id = array_key_exists("invoice", $data) ? $data["invoice"]["id"] ?? null : "";
    return is_string($id) ? $id : null;
}

function show_form(): void
{
    $number = bin2hex(random_bytes(16));
    $button = "<button name=\"number\" value=\"$number\">Buy a mug</button>";
    echo "<form method=\"post\">$button</form>";
}

function buy(): void
{
    $number = $_POST["number"] ?? "";
    if (!is_string($number) || !preg_match(NUMBER, $number)) {
        http_response_code(400);
        echo "Press the button of this shop.";
        return;
    }
    $order = place_order($number);
    header("Location: " . $order["pay_url"], true, 303);
}

function show_order(): void
{
    $invoiceId = $_GET["invoice"] ?? "";
    $number = is_string($invoiceId) ? number_of($invoiceId) : null;
    if ($number === null) {
        http_response_code(404);
        echo "There is no such order.";
        return;
    }
    $state = is_paid($number) ? "paid" : "waiting for payment";
    header("Cache-Control: no-store");
    echo "<p>Order $number: $state</p>";
}

// Asks what is true now, so a webhook that comes late or twice does no harm.
function receive_webhook(): void
{
    $id = $_SERVER["HTTP_WEBHOOK_ID"] ?? "";
    $sentAt = $_SERVER["HTTP_WEBHOOK_TIMESTAMP"] ?? "";
    $signatures = $_SERVER["HTTP_WEBHOOK_SIGNATURE"] ?? "";
    $body = file_get_contents("php://input", length: MAX_BODY_BYTES);
    if (!is_signed($id, $sentAt, $signatures, $body)) {
        http_response_code(401);
        return;
    }
    $invoiceId = invoice_id_of($body);
    if ($invoiceId === null) {
        http_response_code(400);
        return;
    }
    $number = number_of($invoiceId);
    if ($number !== null) {
        $invoice = ask("/invoices/$invoiceId");
        set_paid($number, $invoice["status"] === "paid");
    }
    http_response_code(204);
}

// Finds what was paid while no webhook came. Run it every ten minutes, by cron.
function poll(): void
{
    foreach (ask("/payments?limit=100")["data"] as $payment) {
        $number = number_of($payment["invoice_id"] ?? "");
        if ($number !== null) {
            set_paid($number, true);
        }
    }
}

function answer(): void
{
    $path = parse_url($_SERVER["REQUEST_URI"], PHP_URL_PATH);
    match ($_SERVER["REQUEST_METHOD"] . " $path") {
        "GET /" => show_form(),
        "POST /" => buy(),
        "GET /return" => show_order(),
        "POST /hooks" => receive_webhook(),
        default => http_response_code(404),
    };
}

if (!is_dir(FOLDER)) {
    mkdir(FOLDER);
}
if (PHP_SAPI === "cli-server") {
    try {
        answer();
    } catch (Throwable $error) {
        error_log((string) $error);
        http_response_code(500);
        echo "Try again in a minute.";
    }
} elseif (($argv[1] ?? "") === "poll") {
    poll();
}
