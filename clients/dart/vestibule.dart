// The session of an app made with Flutter, to copy into the app: docs/flutter.md. `base` has no slash at its end.

import 'dart:async';
import 'dart:convert';
import 'dart:math';

import 'package:flutter/foundation.dart';
import 'package:flutter_secure_storage/flutter_secure_storage.dart';
import 'package:http/http.dart' as http;

/// `error` is of the service, or `network`, `signed_out`, `superseded`, `storage`.
class VestibuleError implements Exception {
  VestibuleError(this.error, {this.status, this.reason, this.retryAfter});
  final String error;
  final int? status, retryAfter;
  final String? reason;
}

sealed class AuthState {}

class Restoring extends AuthState {}

/// [offline]: the last refresh brought no answer. [changedFrom]: the former user, whose data is on this device.
class SignedIn extends AuthState {
  SignedIn(this.user, {this.offline = false, this.changedFrom});
  final Map<String, dynamic> user;
  final bool offline;
  final String? changedFrom;
}

/// [reason]: `never`, `signed_out`, `storage_failed`, or the service's.
class SignedOut extends AuthState {
  SignedOut(this.reason);
  final String reason;
}

/// One isolate has one for the whole app; others ask it.
class Vestibule {
  Vestibule(this.base, {http.Client? client}) : _http = client ?? http.Client() {
    unawaited(restore().catchError((_) {}));
  }

  final String base;
  final http.Client _http;
  final ValueNotifier<AuthState> state = ValueNotifier(Restoring());
  Map<String, dynamic>? _session;           // id, refresh_token, user
  String? _lastUser;
  ({String token, DateTime since, Duration good})? _access;
  Future<String>? _refreshing;
  ({VestibuleError error, DateTime since, Duration good})? _pause;
  int _generation = 0;                      // counts the sessions: what began under another number is thrown away
  int _attempts = 0;                        // counts the sign-ins, of which only the last one may succeed

  // The storage. Its uses follow each other in the order in which they were begun.

  static const _store = FlutterSecureStorage(
    iOptions: IOSOptions(accessibility: KeychainAccessibility.first_unlock_this_device),
  );
  Future<void> _queue = Future.value();

  Future<T> _queued<T>(Future<T> Function() work) {
    final done = _queue.then((_) => work()).catchError((Object _) => throw VestibuleError('storage'));
    _queue = done.then((_) {}, onError: (_) {});
    return done;
  }

  Future<Map<String, dynamic>> _load() async {
    final text = await _store.read(key: 'vestibule');
    try {
      return jsonDecode(text ?? '{}') as Map<String, dynamic>;
    } on FormatException {
      return {};
    }
  }

  Future<void> _save(Map<String, dynamic> stored) => _store.write(key: 'vestibule', value: jsonEncode(stored));

  // The beginning and the end of a session.

  bool get _unread => switch (state.value) {
        Restoring() => true,
        SignedOut(:final reason) => reason == 'storage_failed',
        _ => false,
      };

  Future<void> restore() async {
    if (!_unread) return;
    try {
      final stored = await _queued(_load);
      if (!_unread) return;
      _lastUser = stored['user_id'] as String?;
      final kept = stored['session'] as Map<String, dynamic>?;
      kept == null ? _become(null, stored['reason'] as String? ?? 'never') : _enter(kept);
    } on VestibuleError {
      if (state.value is Restoring) state.value = SignedOut('storage_failed');
      rethrow;                               // the next call reads it again, a sign-in replaces it
    }
  }

  void _become(Map<String, dynamic>? next, [String reason = 'signed_out']) {
    _generation++;
    _session = next;
    _access = null;
    _refreshing = null;
    _pause = null;
    if (next == null) state.value = SignedOut(reason);
  }

  void _enter(Map<String, dynamic> next) {
    final user = next['user'] as Map<String, dynamic>;
    final from = _lastUser == user['id'] ? null : _lastUser;
    _lastUser = user['id'] as String;
    _become(next);
    state.value = SignedIn(user, changedFrom: from);
  }

  /// Forgets the session: here at once, then in the storage, unless another one is there by then.
  Future<VestibuleError> _end(String reason) async {
    _become(null, reason);
    final mine = _generation;
    await _queued(() async {
      if (mine == _generation) await _save({'reason': reason, 'user_id': _lastUser});
    });
    return VestibuleError('signed_out', reason: reason);
  }

  Future<void> signIn(String provider, String idToken, {String? nonce, Map<String, dynamic> more = const {}}) async {
    final mine = ++_attempts;
    await restore().catchError((_) {});
    final asked = DateTime.now();
    final body = {...more, 'id_token': idToken, if (nonce != null) 'nonce': nonce};
    final answer = await _post('auth/oauth/${Uri.encodeComponent(provider)}', body);
    final token = answer['refresh_token'] as String;
    final next = {'id': '${Random.secure().nextInt(1 << 32)}', 'refresh_token': token, 'user': answer['user']};
    try {
      if (mine != _attempts) throw VestibuleError('superseded');
      await _queued(() => _save({'session': next}));
      if (mine != _attempts) throw VestibuleError('superseded');
    } catch (_) {
      _tell(token, 'local');
      // It may be stored already.
      await _queued(() async {
        final stored = await _load();
        if ((stored['session'] as Map?)?['id'] != next['id']) return;
        final kept = _session;
        await _save(kept != null ? {'session': kept} : {'reason': 'signed_out', 'user_id': _lastUser});
      }).catchError((_) {});
      rethrow;
    }
    final left = _session;
    _enter(next);
    _keep(answer, asked);
    if (left != null) _tell(left['refresh_token'] as String, 'local');
  }

  /// Signs out here, whether or not the service can be told. [scope]: `local` or `global`.
  Future<void> signOut({String scope = 'local'}) async {
    _attempts++;
    await restore().catchError((_) {});
    final left = _session;
    if (left != null) _tell(left['refresh_token'] as String, scope);
    await _end('signed_out');
  }

  void _tell(String token, String scope) =>
      unawaited(_post('auth/logout?scope=$scope', {'refresh_token': token}).then((_) {}, onError: (_) {}));

  // Tokens.

  /// A clock that was set back ends a period.
  static bool _lasts(DateTime since, Duration good) {
    final passed = DateTime.now().difference(since);
    return !passed.isNegative && passed < good;
  }

  void _keep(Map<String, dynamic> answer, DateTime asked) {
    final good = Duration(seconds: (answer['expires_in'] as int) - 30);
    _access = (token: answer['access_token'] as String, since: asked, good: good);
  }

  /// A token that is good for half a minute at least. [rejected]: one that was answered with 401, or is too old.
  Future<String> accessToken({String? rejected}) async {
    await restore();
    if (_session == null) throw _signedOut();
    final (access, pause) = (_access, _pause);
    if (access != null && access.token != rejected && _lasts(access.since, access.good)) return access.token;
    if (pause != null && _lasts(pause.since, pause.good)) throw pause.error;
    return _refreshing ??= _refresh(_generation);          // all who need it wait for the same one
  }

  Future<String> _refresh(int mine) async {
    void still() {
      if (mine != _generation) throw VestibuleError('superseded');
    }

    try {
      await Future<void>.value();                          // so that `_refreshing` is set
      still();
      final kept = _session!;
      final asked = DateTime.now();
      final answer = await _exchange(kept['refresh_token'] as String);
      still();
      final next = {...kept, 'refresh_token': answer['refresh_token']};
      await _queued(() async {                             // before the new token is used
        if (mine == _generation) await _save({'session': next});
      });
      still();
      _session = next;
      _keep(answer, asked);
      _offline(false);
      return answer['access_token'] as String;
    } on VestibuleError catch (error) {
      still();
      if (error.error == 'invalid_refresh_token' || error.error == 'user_disabled') {
        throw await _end(error.reason ?? (error.error == 'user_disabled' ? error.error : 'session_unknown'));
      }
      final wait = error.retryAfter;
      if (wait != null) _pause = (error: error, since: DateTime.now(), good: Duration(seconds: wait));
      if (error.error == 'network' || (error.status ?? 0) >= 500) _offline(true);
      rethrow;
    } finally {
      if (mine == _generation) _refreshing = null;
    }
  }

  /// A lost answer is asked for again at once, with the same token: its answer is the same, or as good.
  Future<Map<String, dynamic>> _exchange(String token) async {
    try {
      return await _post('auth/refresh', {'refresh_token': token});
    } on VestibuleError catch (error) {
      if ((error.status ?? 500) < 500 || error.retryAfter != null) rethrow;
      return _post('auth/refresh', {'refresh_token': token});
    }
  }

  void _offline(bool offline) {
    final now = state.value;
    if (now is SignedIn && now.offline != offline) {
      state.value = SignedIn(now.user, offline: offline, changedFrom: now.changedFrom);
    }
  }

  VestibuleError _signedOut() {
    final now = state.value;
    return VestibuleError('signed_out', reason: now is SignedOut ? now.reason : null);
  }

  // Requests.

  /// Sends a request as the user, to services that accept these tokens and to no others, and repeats it once after a 401.
  Future<http.Response> send(Uri url, Future<http.Response> Function(http.Client, Map<String, String>) request) async {
    await restore();
    final mine = _generation;
    Future<http.Response> attempt(String token) async {
      if (mine != _generation) throw VestibuleError('superseded');
      final response = await _lost(() => request(_http, {'Authorization': 'Bearer $token'}));
      if (mine != _generation) throw VestibuleError('superseded');
      return response;
    }

    final token = await accessToken();
    final response = await attempt(token);
    if (response.statusCode != 401) return response;
    final reason = _problem(response.body)['reason'] as String?;
    // The token is genuine, and its session is over.
    if (url.toString().startsWith('$base/') && reason != null) throw await _end(reason);
    return attempt(await accessToken(rejected: token));
  }

  static Future<T> _lost<T>(Future<T> Function() work) async {
    try {
      return await work().timeout(const Duration(seconds: 10));
    } catch (_) {
      throw VestibuleError('network');
    }
  }

  static Map<String, dynamic> _problem(String text) {
    try {
      return jsonDecode(text) as Map<String, dynamic>;
    } catch (_) {
      return {};
    }
  }

  Future<Map<String, dynamic>> _post(String path, Map<String, dynamic> body) async {
    final headers = {'Content-Type': 'application/json'};
    final url = Uri.parse('$base/api/v1/$path');
    final response = await _lost(() => _http.post(url, headers: headers, body: jsonEncode(body)));
    final status = response.statusCode;
    if (status == 204) return {};
    // An answer that is cut off is a lost answer.
    if (status < 300) return _lost(() async => jsonDecode(utf8.decode(response.bodyBytes)) as Map<String, dynamic>);
    final problem = _problem(response.body);
    // A proxy's answer has no name, and goes by its status.
    final name = status == 429 ? 'rate_limited' : (status < 500 ? 'invalid_request' : 'service_unavailable');
    throw VestibuleError(
      problem['error'] as String? ?? name,
      status: status,
      reason: problem['reason'] as String?,
      retryAfter: int.tryParse(response.headers['retry-after'] ?? ''),
    );
  }
}
